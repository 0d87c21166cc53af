// Sessions in IndexedDB, with a small substitute for it: records are structured clones, as in a browser.
import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "../redisdc.js";
import { FakeGateway } from "./support/fakeGateway.js";

/** The part of IndexedDB that the module uses. */
function substitute(records, { isBroken = false } = {}) {
    const later = (target, name) => setImmediate(() => target[name]?.());
    const request = (result) => {
        const request = { result };
        later(request, "onsuccess");
        return request;
    };
    const store = {
        get: (key) => request(structuredClone(records.get(key))),
        put: (record, key) => request(records.set(key, structuredClone(record)) && key),
        delete: (key) => request(records.delete(key) && undefined),
    };
    const database = {
        createObjectStore() {},
        close() {},
        transaction: () => {
            const transaction = { objectStore: () => store };
            setImmediate(() => setImmediate(() => later(transaction, "oncomplete")));
            return transaction;
        },
    };
    return {
        open: () => {
            const opening = { result: database, error: new Error("not allowed") };
            setImmediate(() => (isBroken ? opening.onerror() : (opening.onupgradeneeded(), opening.onsuccess())));
            return opening;
        },
    };
}

async function setUp(t, options) {
    const gateway = await FakeGateway.start();
    const records = new Map();
    globalThis.indexedDB = substitute(records, options);
    t.after(() => {
        delete globalThis.indexedDB;
        return gateway.stop();
    });
    const credential = t.mock.fn(() => "secret");
    const open = () => connect(gateway.url, { user: "alice", device: "phone", credential });
    return { gateway, records, open, logins: () => credential.mock.callCount() };
}

test("a page that is loaded again has its session, and a key that cannot be exported", async (t) => {
    const { gateway, records, open, logins } = await setUp(t);
    await open();
    const session = await open();
    assert.equal(logins(), 1);
    await session.send("bob", { text: "x" });
    const [record] = records.values();
    assert.equal(record.key.extractable, false);
    assert.ok(!JSON.stringify([...records]).includes(gateway.token));
});

test("an expired session is replaced by a login, and a corrected clock is stored", async (t) => {
    const { gateway, records, open, logins } = await setUp(t);
    const session = await open();
    gateway.clockOffset = 3_500_000;
    await session.send("bob", { text: "x" });
    // The clock is stored in the background.
    while (Math.abs([...records.values()][0].clockOffset - 3_500_000) > 60_000) await new Promise(setImmediate);
    await open();
    assert.equal(logins(), 1);
    [...records.values()][0].expires = gateway.time + 30_000;
    await open();
    assert.equal(logins(), 2);
});

test("a session that has ended is deleted, a newer one of another tab stays", async (t) => {
    const { gateway, records, open, logins } = await setUp(t);
    const first = await open();
    const second = await open();
    gateway.refusal = "logged-in-elsewhere";
    await assert.rejects(first.send("bob", { text: "x" }), { type: "logged-in-elsewhere" });
    gateway.refusal = undefined;
    const old = gateway.session;
    gateway.session = "another";
    await open();
    assert.equal(logins(), 2);
    assert.equal(second.id, old);
    await assert.rejects(second.send("bob", { text: "x" }), { type: "unknown-session" });
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    assert.equal([...records.values()][0].id, "another");
    const third = await open();
    await third.logOut();
    assert.equal(records.size, 0);
});

test("a browser that keeps nothing can still log in", async (t) => {
    const { open, logins } = await setUp(t, { isBroken: true });
    await (await open()).send("bob", { text: "x" });
    await open();
    assert.equal(logins(), 2);
});
