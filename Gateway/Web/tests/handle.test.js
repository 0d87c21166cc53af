// Handlers by type, and acknowledgements when they have finished.
import assert from "node:assert/strict";
import test from "node:test";
import { numbered, setUp, slower, until } from "./support/helpers.js";

/** Says whether less time has passed than the last acknowledgement has, which is two seconds. */
function timer() {
    const begin = performance.now();
    return () => performance.now() - begin < 1990;
}

test("handlers run in order, one at a time, and a message is acknowledged when its handler has finished", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.add({ type: "move", text: "1" }, { type: "chat", text: "2" }, { type: "move", text: "3" });
    const log = [];
    let finish;
    const handled = session.handle({
        move: async ({ text }) => {
            log.push(`begin ${text}`);
            if (text === "3") await new Promise((resolve) => (finish = resolve));
            log.push(`end ${text}`);
        },
        chat: ({ text }) => log.push(`chat ${text}`),
    });
    await until("the third handler waits", () => finish && gateway.acknowledged === gateway.cursor(2));
    assert.deepEqual(log, ["begin 1", "end 1", "chat 2", "begin 3"]);
    finish();
    await until("it is acknowledged", () => gateway.acknowledged === gateway.cursor(3));
    gateway.supersede();
    assert.equal((await handled).kind, "superseded");
});

test("a handler that fails ends it: what came before is acknowledged, its message is not", async (t) => {
    await slower("the acknowledgement comes in time", async () => {
        const { gateway, session } = await setUp(t);
        gateway.add(...numbered(3));
        const error = new Error("no");
        const isInTime = timer();
        await assert.rejects(session.handle({ "*": ({ text }) => { if (text === "3") throw error; } }), error);
        if (!isInTime()) return false;
        assert.equal(gateway.acknowledged, gateway.cursor(2));
        const seen = [];
        const onError = (_, message) => seen.push(message.text);
        const again = session.handle({ "*": () => { throw error; } }, { onError });
        await until("the error is reported and the message acknowledged",
            () => gateway.acknowledged === gateway.cursor(3));
        gateway.supersede();
        await again;
        assert.deepEqual(seen, ["3"]);
        return true;
    });
});

test("a type like \"constructor\" calls no handler, and a message without a handler is acknowledged", async (t) => {
    const { gateway, session } = await setUp(t);
    const types = ["constructor", "__proto__", "toString", "hasOwnProperty", undefined];
    for (const type of types) gateway.add({ type, text: "" });
    const handled = session.handle({ chat: assert.fail });
    await until("all are acknowledged", () => gateway.acknowledged === gateway.cursor(5));
    gateway.supersede();
    await handled;
});

test("a duplicate is acknowledged without its handler", async (t) => {
    const { gateway, session } = await setUp(t);
    gateway.add({ id: "same", text: "1" }, { id: "same", text: "1" });
    let count = 0;
    const handled = session.handle({ "*": () => count++ });
    await until("both are acknowledged", () => gateway.acknowledged === gateway.cursor(2));
    gateway.supersede();
    await handled;
    assert.equal(count, 1);
});

test("a gap is acknowledged when its handler has finished", async (t) => {
    const { gateway, session } = await setUp(t, { firstIndex: 5 });
    gateway.add({ text: "5" });
    const gaps = [];
    const handled = session.handle({}, { after: gateway.cursor(1), onGap: (gap) => gaps.push(gap.status) });
    await until("the message after the gap is acknowledged", () => gateway.acknowledged === gateway.cursor(5));
    gateway.supersede();
    await handled;
    assert.deepEqual(gaps, ["truncated"]);
});

test("acknowledgements that fail for a while, or are of no consequence, do not disturb the handlers", async (t) => {
    const { gateway, session } = await setUp(t, {}, { timings: { call: 2000 } });
    let count = 0;
    gateway.fault = ({ path }) => {
        if (path !== "/v1/ack") return undefined;
        count++;
        if (count < 4) return gateway.problem("unavailable", 503);
        return count === 4 ? gateway.problem("cursor", 409) : undefined;
    };
    const texts = [];
    const handled = session.handle({ "*": ({ text }) => texts.push(text) });
    for (const number of [1, 2, 3]) gateway.add({ text: `${number}` });
    await until("a refusal", () => count >= 4);
    gateway.add({ text: "4" });
    await until("the last is acknowledged", () => gateway.acknowledged === gateway.cursor(4));
    gateway.supersede();
    await handled;
    assert.deepEqual(texts, ["1", "2", "3", "4"]);
});

test("a signal ends it with its reason, and what was handled is acknowledged", async (t) => {
    await slower("the acknowledgement comes in time", async () => {
        const { gateway, session } = await setUp(t, {}, { timings: { acknowledge: 600_000 } });
        gateway.add(...numbered(3));
        const controller = new AbortController();
        const reason = new Error("enough");
        const isInTime = timer();
        const end = ({ text }) => text === "3" && setImmediate(() => controller.abort(reason));
        await assert.rejects(session.handle({ "*": end }, { signal: controller.signal }), reason);
        if (!isInTime()) return false;
        assert.equal(gateway.acknowledged, gateway.cursor(3));
        return true;
    });
});
