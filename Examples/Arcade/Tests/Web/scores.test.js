import assert from "node:assert/strict";
import test from "node:test";
import { addLocalScore, localScores } from "../../web/scores.js";

class Storage {
    #items = new Map();
    getItem(key) { return this.#items.get(key) ?? null; }
    setItem(key, value) { this.#items.set(key, value); }
}

test("ten scores are kept, the best first, and among equal ones the earlier", () => {
    const storage = new Storage();
    assert.deepEqual(localScores(storage, "words"), []);
    const numbers = [5, 3, 9, 5, 1, 7, 7, 2, 8, 4];
    numbers.forEach((score, time) => assert.ok(addLocalScore(storage, "words", score, time)));
    const expected = numbers.map((score, time) => ({ score, time })).sort((a, b) => b.score - a.score || a.time - b.time);
    assert.deepEqual(localScores(storage, "words"), expected);
    assert.equal(addLocalScore(storage, "words", 1, 10), false, "not above the last");
    assert.ok(addLocalScore(storage, "words", 2, 11));
    assert.deepEqual(localScores(storage, "words").at(-1), { score: 2, time: 11 });
    assert.equal(localScores(storage, "words").length, 10);
    assert.deepEqual(localScores(storage, "other"), []);
});

test("a damaged record counts as none", () => {
    const storage = new Storage();
    storage.setItem("scores.words", "{");
    assert.ok(addLocalScore(storage, "words", 1, 1));
    assert.deepEqual(localScores(storage, "words"), [{ score: 1, time: 1 }]);
});
