// Logging in, calls, and what repairs them.
import assert from "node:assert/strict";
import test from "node:test";
import { connect, GatewayError } from "../redisdc.js";
import { FakeGateway } from "./support/fakeGateway.js";
import { connectTo, setUp } from "./support/helpers.js";

const paths = (gateway) => gateway.requests.map(({ method, path }) => `${method} ${path}`);
const once = (path, fault) => {
    let isDone = false;
    return (call) => {
        if (isDone || call.path !== path) return undefined;
        isDone = true;
        return fault;
    };
};

test("a login yields a session, and the token does not travel again", async (t) => {
    const { gateway, session } = await setUp(t);
    assert.equal(session.id, gateway.session);
    await session.send("bob", { type: "chat", text: "grüß dich 👋" });
    assert.deepEqual(JSON.parse(gateway.requests[0].body), { user: "alice", device: "phone", credential: "secret" });
    const later = JSON.stringify(gateway.requests.slice(1));
    assert.ok(!later.includes(gateway.token) && !JSON.stringify(session).includes(gateway.token));
});

test("a send is repeated with its id when the reply is lost, and has one effect", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.fault = once("/v1/send", "lose");
    const { indices } = await session.send(["bob", "carol"], [{ text: "one" }, { text: "two" }]);
    assert.deepEqual(indices, { bob: [1, 2], carol: [1, 2] });
    assert.equal(gateway.messages.length, 2);
    assert.equal(paths(gateway).filter((path) => path === "POST /v1/send").length, 2);
});

test("a call of the application is repeated when its reply is lost, and its refusal has the reason", async (t) => {
    const { gateway, session } = await setUp(t);
    let count = 0;
    gateway.fault = ({ path }) => {
        if (path !== "/games/move") return undefined;
        return [
            "lose", { body: '{"cells":[1,2]}' },
            gateway.problem("refused", 409, { body: { reason: "not-your-turn" } }),
        ][count++];
    };
    assert.deepEqual(await session.call("/games/move", { id: "m1" }), { cells: [1, 2] });
    await assert.rejects(session.call("/games/move", { id: "m2" }), { type: "refused", reason: "not-your-turn" });
    const moves = gateway.requests.filter(({ path }) => path === "/games/move");
    assert.deepEqual(moves.map(({ method, body }) => `${method} ${body}`),
        ['POST {"id":"m1"}', 'POST {"id":"m1"}', 'POST {"id":"m2"}']);
});

test("mayHaveRun stays true when a later attempt is refused", async (t) => {
    const { gateway, session } = await setUp(t);
    let count = 0;
    gateway.fault = ({ path }) => {
        if (path !== "/v1/send") return undefined;
        return count++ ? gateway.problem("mailbox-full", 429) : "lose";
    };
    await assert.rejects(session.send("bob", { text: "x" }), { type: "mailbox-full", mayHaveRun: true });
    gateway.fault = ({ path }) => (path === "/v1/send" ? gateway.problem("mailbox-full", 429) : undefined);
    await assert.rejects(session.send("bob", { text: "x" }), { type: "mailbox-full", mayHaveRun: false });
});

test("a call waits as long as Retry-After demands", async (t) => {
    const { gateway, session } = await setUp(t);
    for (const [type, status] of [["too-many-requests", 429], ["unavailable", 503]]) {
        const times = [];
        gateway.fault = ({ path }) => {
            if (path !== "/v1/send") return undefined;
            times.push(performance.now());
            const reply = gateway.problem(type, status, { headers: { "Retry-After": "1" } });
            return times.length === 1 ? reply : undefined;
        };
        await session.send("bob", { text: type });
        assert.equal(times.length, 2);
        assert.ok(times[1] - times[0] >= 990, `${times[1] - times[0]} ms`);
    }
});

test("a call that does not succeed in its time throws the last error", async (t) => {
    const { gateway, session } = await setUp(t);
    const more = { headers: { "Retry-After": "60" }, body: { mayHaveRun: false } };
    gateway.fault = () => gateway.problem("unavailable", 503, more);
    // Much longer than the reply takes on a busy machine, and shorter than the wait that it demands.
    await assert.rejects(session.send("bob", { text: "x" }, { timeout: 30_000 }), (error) => {
        assert.ok(error instanceof GatewayError);
        const { type, status, retryAfter, mayHaveRun } = error;
        assert.deepEqual([type, status, retryAfter, mayHaveRun], ["unavailable", 503, 60_000, false]);
        return true;
    });
    assert.deepEqual(paths(gateway), ["POST /v1/sessions", "POST /v1/send"]);
});

test("a server that never replies is left after a time", async (t) => {
    const { gateway, session } = await setUp(t, {}, { timings: { request: 50 } });
    gateway.fault = () => "hang";
    await assert.rejects(session.send("bob", { text: "x" }, { timeout: 200 }), { type: "network", mayHaveRun: true });
});

test("a wrong clock is corrected by the server's time, and the call signed once more", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.clockOffset = 3_600_000;
    await session.send("bob", { text: "x" });
    assert.ok(Math.abs(session.clockOffset - 3_600_000) < 60_000);
    assert.deepEqual(paths(gateway).slice(1), ["POST /v1/send", "POST /v1/send"]);
    await session.send("bob", { text: "y" });
    assert.equal(gateway.requests.length, 4);
});

test("the login corrects the clock", async (t) => {
    const { gateway, session } = await setUp(t, { clockOffset: -7_200_000 });
    await session.acknowledge(gateway.cursor(0));
    assert.deepEqual(paths(gateway), ["POST /v1/sessions", "POST /v1/ack"]);
});

test("a used nonce is replaced once, not for ever", async (t) => {
    const { gateway, session } = await setUp(t);
    const used = gateway.problem("nonce-used", 401, { body: { time: Date.now() } });
    gateway.fault = once("/v1/send", used);
    await session.send("bob", { text: "x" });
    gateway.fault = () => used;
    await assert.rejects(session.send("bob", { text: "x" }), { type: "nonce-used" });
    assert.equal(gateway.requests.length, 5);
});

test("a session that has ended makes no more calls", async (t) => {
    for (const type of ["unknown-session", "logged-in-elsewhere"]) {
        const { gateway, session } = await setUp(t);
        gateway.refusal = type;
        await assert.rejects(session.send("bob", { text: "x" }), { type, status: 401 });
        assert.equal(session.error.type, type);
        await assert.rejects(session.acknowledge("c"), { type });
        await assert.rejects(session.follow().next(), { type });
        assert.equal(gateway.requests.length, 2);
    }
});

test("a reply that is not the gateway's is an error, also with the status 200", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.fault = () => ({ headers: { "Content-Type": "text/html" }, body: "<h1>Welcome to the hotel</h1>" });
    await assert.rejects(session.send("bob", { text: "x" }), { type: "protocol" });
    await assert.rejects(connectTo(gateway), { type: "protocol" });
    gateway.fault = () => ({ status: 404, body: "null" });
    await assert.rejects(session.send("bob", { text: "x" }), { type: "protocol", status: 404 });
});

test("an aborted call throws the signal's reason, and leaves no listener", async (t) => {
    const { gateway, session } = await setUp(t);
    const controller = new AbortController();
    const { signal } = controller;
    const counts = countListeners(signal);
    await session.send("bob", { text: "x" }, { signal });
    gateway.fault = () => gateway.problem("unavailable", 503, { headers: { "Retry-After": "20" } });
    // However late this test reads the reply, the call still waits when it is aborted.
    const call = session.send("bob", { text: "x" }, { signal, timeout: 600_000 });
    while (gateway.requests.length < 3) await new Promise(setImmediate);
    const reason = new Error("enough");
    controller.abort(reason);
    await assert.rejects(call, reason);
    assert.deepEqual([counts.added > 0, counts.added - counts.removed <= 1], [true, true]);
    await assert.rejects(session.send("bob", { text: "x" }, { signal }), reason);
});

function countListeners(signal) {
    const counts = { added: 0, removed: 0 };
    const { addEventListener: add, removeEventListener: remove } = signal;
    signal.addEventListener = (...parts) => (counts.added++, add.apply(signal, parts));
    signal.removeEventListener = (...parts) => (counts.removed++, remove.apply(signal, parts));
    return counts;
}

test("a stored session needs no login, and is deleted when it has ended", async (t) => {
    const gateway = await FakeGateway.start();
    t.after(() => gateway.stop());
    const records = new Map();
    const store = {
        get: async (name) => records.get(name),
        set: async (name, record) => void records.set(name, record),
        delete: async (name, id) => void (records.get(name)?.id === id && records.delete(name)),
    };
    const credential = t.mock.fn(() => "secret");
    const options = { user: "alice", device: "phone", credential, store };
    const first = await connect(gateway.url, options);
    const second = await connect(gateway.url, options);
    assert.deepEqual([first.id, credential.mock.callCount()], [second.id, 1]);
    await second.send("bob", { text: "x" });
    const [record] = records.values();
    assert.ok(record.key instanceof CryptoKey && !record.key.extractable);
    assert.ok(!JSON.stringify(record).includes(gateway.token));
    gateway.refusal = "logged-in-elsewhere";
    await assert.rejects(second.send("bob", { text: "x" }), { type: "logged-in-elsewhere" });
    assert.equal(records.size, 0);
    // A session that another tab has stored since then stays.
    records.set([...records.keys()][0] ?? "x", { id: "another" });
    await assert.rejects(first.send("bob", { text: "x" }), { type: "logged-in-elsewhere" });
    assert.equal(records.size, 1);
    await assert.rejects(connect(gateway.url, { user: "eve", device: "d", store }), { type: "unknown-session" });
});

test("a store that fails does not keep a session from working", async (t) => {
    const fail = async () => { throw new Error("no space"); };
    const { session } = await setUp(t, {}, { store: { get: fail, set: fail, delete: fail } });
    await session.send("bob", { text: "x" });
    await session.logOut();
    await assert.rejects(session.send("bob", { text: "x" }), { type: "unknown-session" });
});
