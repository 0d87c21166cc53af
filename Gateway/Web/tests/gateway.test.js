// Against a real gateway on a real Redis: REDISDC_GATEWAY and REDIS_SERVER are the paths of the two programs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import test from "node:test";
import { connect } from "../redisdc.js";
import { messages, numbered, texts, transports, until } from "./support/helpers.js";

const { REDISDC_GATEWAY: program, REDIS_SERVER: redis } = process.env;
const limit = { timeout: 600_000 };
const skip = program && redis ? false : "REDISDC_GATEWAY and REDIS_SERVER are not set";

/**
 * Finds a port that a node has again when it is started again: the system takes none of these for an outgoing connection
 * while the node is down (on Linux it does so from 32768 on, on macOS from 49152 on).
 */
async function freePort() {
    for (;;) {
        const port = 12_000 + Math.floor(Math.random() * 8000);
        const server = createServer();
        const isFree = await new Promise((resolve) => {
            server.once("error", () => resolve(false));
            server.listen(port, "127.0.0.1", () => resolve(true));
        });
        if (!isFree) continue;
        server.close();
        await once(server, "close");
        return port;
    }
}

/** Starts a program that ends with this one, and waits for a line of its output. */
async function start(path, options, line) {
    const child = spawn(path, options, { stdio: ["ignore", "pipe", "inherit"] });
    const kill = () => child.kill("SIGKILL");
    process.once("exit", kill);
    child.once("exit", () => process.off("exit", kill));
    let output = "";
    child.stdout.on("data", (bytes) => (output += bytes));
    await until(`${path} is ready`, () => output.includes(line) || child.exitCode !== null);
    assert.equal(child.exitCode, null, output);
    return child;
}

class World {
    static async start(t) {
        const world = new World();
        const [redisPort, port] = [await freePort(), await freePort()];
        const options = ["--port", `${redisPort}`, "--bind", "127.0.0.1", "--save", "", "--dir", tmpdir()];
        world.redis = await start(redis, options, "Ready to accept");
        world.url = `http://127.0.0.1:${port}`;
        world.options = [
            "--redis-url", `redis://127.0.0.1:${redisPort}`, "--port", `${port}`, "--operations-port", "0",
            "--insecure-anonymous", "true", "--allow-sends", "all", "--log-level", "error",
        ];
        await world.startNode();
        t.after(() => Promise.all([world.end(world.node, "SIGKILL"), world.end(world.redis, "SIGKILL")]));
        return world;
    }

    async startNode() { this.node = await start(program, this.options, "serving "); }

    async end(child, signal) {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill(signal);
        await once(child, "exit");
    }

    connect(user, device = "phone") {
        const timings = { minDelay: 20, maxDelay: 200, poll: 5000 };
        return connect(this.url, { user, device, credential: null, timings });
    }
}

test("a real gateway", { skip, timeout: 3_600_000 }, async (t) => {
    const world = await World.start(t);

    for (const transport of [...transports, "auto"]) {
        await t.test(`${transport}: messages arrive, and are acknowledged`, limit, async () => {
            const [alice, bob] = [await world.connect(`alice-${transport}`), await world.connect("bob-" + transport)];
            const content = [
                { type: "chat", text: "grüß dich 👋", headers: { language: "de" } }, { json: { a: [1, null] } },
                { base64: "AP8=" },
            ];
            const { indices } = await bob.send(alice.user, content, { id: "s-1" });
            assert.deepEqual(indices, { [alice.user]: [1, 3] });
            assert.deepEqual(await bob.send(alice.user, content, { id: "s-1" }), { id: "s-1", indices });
            await assert.rejects(bob.send(alice.user, { text: "other" }, { id: "s-1" }), { type: "id-used" });
            const events = alice.follow({ transport });
            const found = await messages(events, 3);
            assert.deepEqual(found.map(({ from, type, headers }) => ({ from, type, headers }))[0],
                { from: bob.user, type: "chat", headers: { language: "de" } });
            const contents = found.map(({ text, json, base64 }) => text ?? json ?? base64);
            assert.deepEqual(contents, ["grüß dich 👋", { a: [1, null] }, "AP8="]);
            await alice.acknowledge(found[1].cursor);
            const next = messages(events, 1);
            await bob.send(alice.user, { text: "later" });
            assert.deepEqual(texts(await next), ["later"]);
            await events.return();
            const again = alice.follow({ transport });
            assert.deepEqual((await messages(again, 2)).map(({ base64, text }) => base64 ?? text), ["AP8=", "later"]);
            await again.return();
            await assert.rejects(alice.acknowledge("0"), (error) => ["malformed", "cursor"].includes(error.type));
        });

        await t.test(`${transport}: a newer reader, and a newer login, end the older one`, limit, async () => {
            const session = await world.connect(`sue-${transport}`);
            let isOpen = false;
            const older = session.follow({ transport, onConnection: ({ state }) => (isOpen = state === "open") });
            const last = older.next();
            await until("the older one waits", () => isOpen);
            const newer = session.follow({ transport });
            const next = newer.next();
            // Each poll is a reader: a newer one that begins between two polls of the older one ends itself.
            const [first, rest] = await Promise.race([
                last.then((event) => [event, next]), next.then((event) => [event, last]),
            ]);
            assert.equal(first.value.kind, "superseded");
            assert.ok(rest === next || transport === "poll");
            await world.connect(`sue-${transport}`);
            // A poll learns it as an error, a stream as an event.
            const end = await rest.then(({ value }) => value.kind, (error) => error.type);
            assert.ok(["superseded", "logged-in-elsewhere"].includes(end), end);
            await assert.rejects(session.send("x", { text: "x" }), { type: "logged-in-elsewhere" });
        });

        await t.test(`${transport}: a logout ends the session`, limit, async () => {
            const session = await world.connect(`lou-${transport}`);
            let isOpen = false;
            const events = session.follow({ transport, onConnection: ({ state }) => (isOpen = state === "open") });
            const next = events.next();
            await until("it waits", () => isOpen);
            const end = next.then(({ value }) => value.kind, (error) => error.type);
            await session.logOut();
            assert.equal(await end, "unknown-session");
            await assert.rejects(session.send("x", { text: "x" }), { type: "unknown-session" });
        });

        await t.test(`${transport}: nodes that are killed and stopped lose and double nothing`, limit, async () => {
            const [alice, bob] = [await world.connect(`amy-${transport}`), await world.connect("ben-" + transport)];
            const count = 200;
            const received = [];
            const reader = new AbortController();
            const handled = alice.handle({ "*": ({ text }) => {
                received.push(Number(text));
                if (received.length === count) reader.abort();
            } }, { transport, signal: reader.signal });
            const failure = assert.rejects(handled, { name: "AbortError" });
            const restarts = (async () => {
                for (const [number, signal] of [[50, "SIGKILL"], [100, "SIGTERM"], [150, "SIGKILL"]]) {
                    await until(`${number} messages`, () => received.length >= number);
                    await world.end(world.node, signal);
                    await world.startNode();
                }
            })();
            for (let number = 1; number <= count; number += 5) await bob.send(alice.user, numbered(5, number));
            await Promise.all([failure, restarts]);
            assert.deepEqual(received, Array.from({ length: count }, (_, index) => index + 1));
        });
    }
});
