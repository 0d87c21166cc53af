// Following a mailbox: each test runs with each transport.
import assert from "node:assert/strict";
import test from "node:test";
import { messages, numbered, setUp, texts, transports, until } from "./support/helpers.js";

for (const transport of transports) {
    const start = async (t, options, more) => {
        const { gateway, session } = await setUp(t, options, more);
        return { gateway, session, events: session.follow({ transport, ...more?.follow }) };
    };

    test(`${transport}: messages arrive in order, those of before and those of later`, async (t) => {
        const { gateway, events } = await start(t);
        gateway.add(...numbered(3));
        assert.deepEqual(texts(await messages(events, 3)), ["1", "2", "3"]);
        const later = messages(events, 2);
        gateway.add({ type: "chat", text: "grüß dich 👋" }, { json: { a: [1] } });
        assert.deepEqual((await later).map(({ text, json }) => text ?? json), ["grüß dich 👋", { a: [1] }]);
        assert.equal(gateway.acknowledged, undefined);
        await events.return();
    });

    test(`${transport}: a connection that breaks in the middle of an event loses nothing`, async (t) => {
        const { gateway, events } = await start(t);
        let count = 0;
        gateway.streamFault = (piece) => {
            const isMessage = JSON.stringify(piece).includes("grüß");
            return isMessage && count++ < 2 ? "half" : undefined;
        };
        gateway.fault = ({ path }) => (path === "/v1/mail" && count++ < 2 ? "lose" : undefined);
        gateway.add(...numbered(2), { text: "grüß dich 👋" }, ...numbered(2, 4));
        assert.deepEqual(texts(await messages(events, 5)), ["1", "2", "grüß dich 👋", "4", "5"]);
        assert.equal(count >= 2, true);
        await events.return();
    });

    test(`${transport}: a new connection begins at the last message that was read`, async (t) => {
        const { gateway, events } = await start(t);
        gateway.add(...numbered(2));
        await messages(events, 2);
        const next = messages(events, 1);
        await until("the reader waits", () => gateway.streams.size === 1);
        gateway.requests = [];
        for (const stream of gateway.streams) stream.end();
        await until("another request", () => gateway.requests.length > 0);
        assert.equal(gateway.requests[0].query.after, gateway.cursor(2));
        gateway.add({ text: "3" });
        assert.deepEqual(texts(await next), ["3"]);
        await events.return();
    });

    test(`${transport}: duplicates are dropped, by position and by id`, async (t) => {
        const { gateway, events } = await start(t);
        gateway.streamFault = (piece) => [piece, piece];
        gateway.add({ text: "1" }, { text: "2", id: "same" }, { text: "2", id: "same" });
        gateway.add({ text: "3", id: "" }, { text: "4", id: "" });
        assert.deepEqual(texts(await messages(events, 4)), ["1", "2", "3", "4"]);
        const next = events.next();
        gateway.add({ text: "5" });
        assert.equal((await next).value.message.text, "5");
        await events.return();
    });

    test(`${transport}: superseded ends the iteration, and nothing connects again`, async (t) => {
        const { gateway, events } = await start(t);
        gateway.add({ text: "1" });
        await messages(events, 1);
        const next = events.next();
        await until("the reader waits", () => gateway.streams.size === 1);
        const count = gateway.requests.length;
        gateway.supersede();
        assert.deepEqual((await next).value, { kind: "superseded", cursor: gateway.cursor(1) });
        assert.equal((await events.next()).done, true);
        assert.equal(gateway.requests.length, count);
        assert.equal(gateway.streams.size, 0);
    });

    test(`${transport}: a newer reader of the session ends the older one`, async (t) => {
        const { gateway, session, events } = await start(t);
        gateway.add({ text: "1" });
        await messages(events, 1);
        const older = events.next();
        await until("the reader waits", () => gateway.streams.size === 1);
        const newer = session.follow({ transport, after: gateway.cursor(0) });
        assert.deepEqual(texts(await messages(newer, 1)), ["1"]);
        assert.equal((await older).value.kind, "superseded");
        await newer.return();
    });

    test(`${transport}: losses are reported, and reading continues after them`, async (t) => {
        const { gateway, session } = await setUp(t, { firstIndex: 5 });
        gateway.add({ text: "5" });
        const events = session.follow({ transport, after: gateway.cursor(1) });
        const gap = { kind: "gap", status: "truncated", first: 5, cursor: gateway.cursor(4) };
        assert.deepEqual((await events.next()).value, gap);
        assert.deepEqual(texts(await messages(events, 1)), ["5"]);
        Object.assign(gateway, { epoch: 2, messages: [], firstIndex: 1 });
        const next = events.next();
        gateway.add({ text: "again 1" });
        assert.deepEqual((await next).value, { kind: "gap", status: "reset", cursor: gateway.cursor(0) });
        assert.deepEqual(texts(await messages(events, 1)), ["again 1"]);
        await events.return();
    });

    test(`${transport}: a session that ends is a typed error`, async (t) => {
        for (const type of ["unknown-session", "logged-in-elsewhere"]) {
            const { gateway, events } = await start(t);
            gateway.add({ text: "1" });
            await messages(events, 1);
            gateway.refusal = type;
            for (const stream of gateway.streams) stream.end();
            await assert.rejects(events.next(), { type });
            assert.equal((await events.next()).done, true);
        }
    });

    test(`${transport}: a wrong clock and a used nonce are corrected`, async (t) => {
        const { gateway, session, events } = await start(t);
        gateway.clockOffset = 3_600_000;
        gateway.add({ text: "1" });
        assert.deepEqual(texts(await messages(events, 1)), ["1"]);
        assert.ok(Math.abs(session.clockOffset - 3_600_000) < 60_000);
        await events.return();
    });

    test(`${transport}: a signal ends the reader with its reason, also while it waits to connect`, async (t) => {
        const { gateway, session } = await setUp(t);
        for (const isBroken of [false, true]) {
            const unavailable = gateway.problem("unavailable", 503, { headers: { "Retry-After": "30" } });
            gateway.fault = () => (isBroken ? unavailable : undefined);
            const controller = new AbortController();
            const states = [];
            const events = session.follow({
                transport, signal: controller.signal, onConnection: ({ state }) => states.push(state),
            });
            const next = events.next();
            await until("the reader waits", () => states.at(-1) === (isBroken ? "waiting" : "open"));
            const reason = new Error("enough");
            controller.abort(reason);
            await assert.rejects(next, reason);
            await until("the stream is closed", () => gateway.streams.size === 0);
        }
    });

    test(`${transport}: return ends a reader that waits, at once`, async (t) => {
        const { gateway, events } = await start(t);
        const next = events.next();
        await until("the reader waits", () => gateway.streams.size === 1);
        await events.return();
        assert.deepEqual(await next, { done: true, value: undefined });
        await until("the stream is closed", () => gateway.streams.size === 0);
    });

    test(`${transport}: malformed data makes a new connection`, async (t) => {
        const { gateway, events } = await start(t);
        let count = 0;
        gateway.streamFault = (piece) => {
            if (count++ > 0) return undefined;
            return [typeof piece === "string" ? "event: message\ndata: {oops\n\n" : "{oops"];
        };
        gateway.fault = ({ path }) => (path === "/v1/mail" && count++ === 0 ? { body: "{oops" } : undefined);
        gateway.add({ text: "1" });
        assert.deepEqual(texts(await messages(events, 1)), ["1"]);
        await events.return();
    });

    if (transport === "poll") continue;

    test(`${transport}: bye with a time to return makes a new connection after it, expired does not`, async (t) => {
        const { gateway, events } = await start(t);
        gateway.add({ text: "1" });
        await messages(events, 1);
        const next = events.next();
        await until("the stream is open", () => gateway.streams.size === 1);
        const begin = performance.now();
        gateway.bye("restart", 400);
        gateway.add({ text: "2" });
        assert.equal((await next).value.message.text, "2");
        assert.ok(performance.now() - begin >= 395);
        const last = events.next();
        gateway.bye("expired", 5);
        await assert.rejects(last, { type: "unknown-session" });
    });

    test(`${transport}: a stream that falls silent is replaced`, async (t) => {
        const { gateway, events } = await start(t, { frames: [] }, { timings: { silence: 60 } });
        gateway.add({ text: "1" });
        await messages(events, 1);
        const next = events.next();
        gateway.streamFault = () => [];
        const before = gateway.requests.length;
        for (const stream of gateway.streams) stream.put = () => {};
        await until("another connection", () => gateway.requests.length > before);
        gateway.streamFault = () => undefined;
        gateway.add({ text: "2" });
        for (const stream of gateway.streams) stream.end();
        assert.equal((await next).value.message.text, "2");
        await events.return();
    });
}

test("readers that have ended leave no listener at their signal", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.add({ text: "1" });
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener: add, removeEventListener: remove } = signal;
    signal.addEventListener = (...parts) => (listeners++, add.apply(signal, parts));
    signal.removeEventListener = (...parts) => (listeners--, remove.apply(signal, parts));
    for (let count = 0; count < 5; count++) {
        for await (const event of session.follow({ transport: "poll", after: gateway.cursor(0), signal })) {
            assert.equal(event.message.text, "1");
            assert.ok(listeners > 0);
            break;
        }
    }
    assert.equal(listeners, 0);
});

test("a reader ends with its signal, and closes its stream, even if fetch misses the signal", async (t) => {
    for (const transport of ["events", "poll"]) {
        const { gateway, session } = await setUp(t, {}, {
            fetch: (url, { signal, ...init }) => fetch(url, init),
        });
        const controller = new AbortController();
        const events = session.follow({ transport, signal: controller.signal });
        const next = events.next();
        await until("the reader waits", () => gateway.streams.size === 1);
        const reason = new Error("enough");
        controller.abort(reason);
        await assert.rejects(next, reason);
        if (transport === "events") await until("the stream is closed", () => gateway.streams.size === 0);
    }
});

test("events: a parser takes lines of each kind, in pieces of each size", async (t) => {
    const text = [
        ": comment", "retry: 7", "", "id: c-1", "", "event:message", 'data:{"cursor":"c-2",', 'data: "text":"ü👋"}',
        "id: c-2", "", "unknown: x", "", "",
    ];
    for (const end of ["\n", "\r\n", "\r"]) {
        const bytes = Buffer.from(text.join(end));
        for (const size of [1, 2, 3, 7, 1000]) {
            const pieces = async function* () {
                for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
                await new Promise(() => {});
            };
            const stream = new ReadableStream({
                iterator: pieces(),
                async pull(controller) { controller.enqueue((await this.iterator.next()).value); },
            });
            const headers = { "Content-Type": "text/event-stream" };
            const { session } = await setUp(t, {}, {
                fetch: (url, init) =>
                    url.includes("/v1/events") ? new Response(stream, { headers }) : fetch(url, init),
            });
            const events = session.follow({ transport: "events" });
            const { value } = await events.next();
            assert.deepEqual(value, { kind: "message", cursor: "c-2", message: { cursor: "c-2", text: "ü👋" } });
            await events.return();
        }
    }
});
