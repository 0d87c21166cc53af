// The test vectors of docs/http.md, read from the page itself.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { importToken, sign } from "../redisdc.js";

const page = await readFile(new URL("../../../docs/http.md", import.meta.url), "utf8");
const [, token, session] = /^Token `([^`]+)`, session `([^`]+)`/m.exec(page);
const row = /^\| \d \| `(\w+)` \| `([^`]+)` \| `(\d+)` \| `([^`]+)` \| `(.*?)`? \| `(v1=[0-9a-f]{64})` \|$/gm;
const vectors = [...page.matchAll(row)].map((match) => match.slice(1));

test("the signatures are those of the test vectors", async () => {
    assert.equal(vectors.length, 5);
    const key = await importToken(token);
    for (const [method, target, time, nonce, body, signature] of vectors) {
        const text = body === "`" ? "" : body;
        assert.equal(await sign(key, { method, target, session, time: Number(time), nonce, body: text }), signature);
    }
});

test("the key of a token cannot be exported", async () => {
    const key = await importToken(token);
    assert.equal(key.extractable, false);
    await assert.rejects(crypto.subtle.exportKey("raw", key));
});
