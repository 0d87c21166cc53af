// Fallback between transports, back-pressure, and the events of a browser that sleeps or changes its network.
import assert from "node:assert/strict";
import test from "node:test";
import { messages, numbered, setUp, slower, texts, until } from "./support/helpers.js";

const hasSocket = { skip: globalThis.WebSocket ? false : "this runtime has no WebSocket" };

test("auto takes server-sent events", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.add({ text: "1" });
    const states = [];
    const events = session.follow({ onConnection: ({ state, transport }) => states.push(`${state} ${transport}`) });
    await messages(events, 1);
    assert.deepEqual(states, ["connecting events", "open events"]);
    await events.return();
});

test("auto falls back when a transport does not pass, and goes back to the preferred one later", async (t) => {
    const { gateway, session } = await setUp(t, {}, { timings: { upgrade: 30 } });
    let isBroken = true;
    const html = { headers: { "Content-Type": "text/html" }, body: "a proxy" };
    gateway.fault = ({ path }) => (isBroken && ["/v1/events", "/v1/socket"].includes(path) ? html : undefined);
    gateway.add({ text: "1" });
    const opened = [];
    const onConnection = ({ state, transport }) => state === "open" && opened.push(transport);
    const events = session.follow({ onConnection });
    assert.deepEqual(texts(await messages(events, 1)), ["1"]);
    assert.deepEqual(opened, ["poll"]);
    isBroken = false;
    const next = messages(events, 1);
    await until("the preferred transport", () => opened.at(-1) === "events");
    gateway.add({ text: "2" });
    assert.deepEqual(texts(await next), ["2"]);
    await events.return();
});

test("auto leaves a stream of events that a proxy holds back", async (t) => {
    const { gateway, session } = await setUp(t, { firstLine: "" }, { timings: { open: 100 } });
    const opened = [];
    const onConnection = ({ state, transport }) => state === "open" && opened.push(transport);
    const events = session.follow({ onConnection });
    gateway.streamFault = (piece) => (typeof piece === "string" ? [] : undefined);
    gateway.add({ text: "1" });
    assert.deepEqual(texts(await messages(events, 1)), ["1"]);
    assert.ok(!opened.includes("events"));
    await events.return();
});

test("an error that only the caller can correct is thrown", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.fault = () => gateway.problem("malformed", 400);
    await assert.rejects(session.follow().next(), { type: "malformed" });
    assert.throws(() => session.follow({ transport: "pigeon" }), TypeError);
});

test("too many streams, and a node that stops, are waited for", async (t) => {
    const { gateway, session } = await setUp(t);
    const problems = [gateway.problem("too-many-streams", 429), gateway.problem("unavailable", 503)];
    const refusals = [...problems, { status: 502 }, "drop"];
    gateway.fault = () => refusals.shift();
    gateway.add({ text: "1" });
    const events = session.follow({ transport: "events" });
    assert.deepEqual(texts(await messages(events, 1)), ["1"]);
    await events.return();
});

test("events: a slow reader slows the connection down", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.add({ text: "0" });
    const events = session.follow({ transport: "events" });
    await messages(events, 1);
    const [stream] = gateway.streams;
    const piece = ":" + "x".repeat(65_536) + "\n";
    // The reader does not read: at some time the connection is full. It is not, as long as the client takes everything.
    let size = 0;
    for (let isFull = false; !isFull && size < 64 << 20; size += piece.length) {
        if (stream.response.write(piece)) continue;
        isFull = await Promise.race([
            new Promise((resolve) => stream.response.once("drain", () => resolve(false))),
            new Promise((resolve) => setTimeout(() => resolve(true), 500)),
        ]);
    }
    assert.ok(size < 64 << 20);
    await events.return();
});

test("websocket: what a slow reader has not read is bounded, and nothing is lost", hasSocket, async (t) => {
    const { gateway, session } = await setUp(t);
    const size = 100_000;
    const large = (number) => ({ text: `${number} ${"x".repeat(size)}` });
    const events = session.follow({ transport: "websocket" });
    gateway.add(large(1));
    assert.ok((await messages(events, 1))[0].text.startsWith("1 "));
    const [stream] = gateway.streams;
    for (let number = 2; number <= 40; number++) gateway.add(large(number));
    await until("the client closes the socket", () => !gateway.streams.has(stream));
    const rest = await messages(events, 39);
    assert.deepEqual(rest.map(({ text }) => parseInt(text)), Array.from({ length: 39 }, (_, index) => index + 2));
    await events.return();
});

test("websocket: a connection that only answers probes is kept", hasSocket, async (t) => {
    await slower("the connection is kept", async (factor) => {
        const { gateway, session } = await setUp(t, { frames: [] }, { timings: { silence: 400 * factor } });
        const events = session.follow({ transport: "websocket" });
        const next = events.next();
        await until("probes", () => gateway.frames.length >= 4);
        // They acknowledge what was acknowledged before, and nothing else.
        assert.ok(gateway.frames.every(({ ack }) => ack === gateway.cursor(0)));
        const sockets = gateway.requests.filter(({ path }) => path === "/v1/socket").length;
        await events.return();
        assert.equal((await next).done, true);
        return sockets === 1;
    });
});

/** Gives Node the events of a page, until the test ends. */
function browser(t) {
    const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
    const target = new EventTarget();
    let listeners = 0;
    for (const each of [page, target]) {
        const { addEventListener: add, removeEventListener: remove } = each;
        each.addEventListener = (...parts) => (listeners++, add.apply(each, parts));
        each.removeEventListener = (...parts) => (listeners--, remove.apply(each, parts));
    }
    Object.assign(globalThis, {
        document: page, addEventListener: target.addEventListener, removeEventListener: target.removeEventListener,
    });
    t.after(() => {
        for (const name of ["document", "addEventListener", "removeEventListener"]) delete globalThis[name];
    });
    return {
        online: () => target.dispatchEvent(new Event("online")),
        visible: () => page.dispatchEvent(new Event("visibilitychange")),
        get listeners() { return listeners; },
    };
}

test("a browser that is online again connects at once, and leaves no listener at the end", async (t) => {
    const events = browser(t);
    const { gateway, session } = await setUp(t, {}, { timings: { minDelay: 600_000, maxDelay: 600_000 } });
    const states = [];
    let isBroken = true;
    gateway.fault = () => (isBroken ? "drop" : undefined);
    const reader = session.follow({ transport: "events", onConnection: ({ state }) => states.push(state) });
    const next = messages(reader, 1);
    await until("the reader waits", () => states.at(-1) === "waiting");
    isBroken = false;
    events.online();
    await until("it is open", () => states.at(-1) === "open");
    // Another network: the old connection may be dead without a sign.
    events.online();
    await until("a new connection", () => gateway.requests.filter(({ path }) => path === "/v1/events").length === 3);
    gateway.add({ text: "1" });
    assert.deepEqual(texts(await next), ["1"]);
    assert.ok(events.listeners > 0);
    await reader.return();
    assert.equal(events.listeners, 0);
});

test("a page that is visible again replaces a connection that has been silent, and keeps another", async (t) => {
    const events = browser(t);
    const { gateway, session } = await setUp(t);
    const states = [];
    const reader = session.follow({ transport: "events", onConnection: ({ state }) => states.push(state) });
    const next = messages(reader, 1);
    await until("it is open", () => states.at(-1) === "open");
    events.visible();
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 30_000 }); // as after a sleep
    gateway.clockOffset = -30_000;
    assert.equal(states.length, 2);
    events.visible();
    await until("it is open again", () => states.length >= 5 && states.at(-1) === "open");
    t.mock.timers.reset();
    gateway.add(...numbered(1));
    assert.deepEqual(texts(await next), ["1"]);
    await reader.return();
});
