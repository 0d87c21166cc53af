import assert from "node:assert/strict";
import test from "node:test";
import { notice } from "../../web/quiz/notices.js";

const player = (name, isPresent = true) => ({ name, points: 0, isPresent });
const quiz = (fields = {}) => ({
    id: "q1", host: "anna", phase: "running", players: [player("anna"), player("bert")], current: 0, turn: "anna", ...fields,
});
const lobby = (...ids) => ({ open: ids.map((id) => ({ id })) });
const bert = (fields = {}) => ({ name: "bert", away: undefined, answered: false, hasLeft: false, ...fields });
const away = bert({ away: 0.5 });

test("a player whom the others have dropped learns that, and not that the game has ended", () => {
    const open = { quiz: quiz({ phase: "open", turn: undefined }) };
    assert.match(notice(open, lobby("q0", "q1"), away), /the others have dropped you.*join it again/);
    assert.match(notice(open, lobby("q0"), away), /away: the game has ended, or has begun without you/);
    assert.match(notice({ quiz: quiz() }, lobby(), away), /away: the host has ended the game/);
    assert.match(notice(open, lobby(), { ...away, name: "anna" }), /your game has ended/);
});

test("a player who was not away learns that the host has gone", () => {
    assert.equal(notice({ quiz: quiz() }, lobby(), bert()), "The host has ended the game, or has gone.");
});

test("a player who leaves the game, or ends it, is told nothing", () => {
    assert.equal(notice({ quiz: quiz() }, lobby(), bert({ hasLeft: true })), undefined);
    assert.equal(notice({ quiz: quiz() }, lobby(), bert({ name: "anna" })), undefined);
});

test("a player who was away learns that the game has gone on", () => {
    const goneOn = "You were away: the game has gone on without you.";
    const mine = { quiz: quiz({ turn: "bert" }) };
    const next = { quiz: quiz({ current: 1, turn: "anna" }) };
    assert.equal(notice(mine, next, away), goneOn);
    // The turn began and passed while the player was away.
    const last = { player: "bert", question: 0 };
    assert.equal(notice({ quiz: quiz() }, { quiz: quiz({ current: 1, turn: "anna", last }) }, away), goneOn);
    // Too long to know what has happened meanwhile.
    assert.equal(notice({ quiz: quiz() }, next, bert({ away: 60 })), goneOn);
    // Not away, or answered before, or for a moment in which others played, or nothing has happened.
    assert.equal(notice(mine, next, bert()), undefined);
    assert.equal(notice(mine, next, bert({ away: 60, answered: true })), undefined);
    assert.equal(notice({ quiz: quiz() }, next, away), undefined);
    assert.equal(notice(mine, { quiz: quiz({ turn: "bert" }) }, bert({ away: 60 })), undefined);
});

test("a player who has gone is named, and a text is removed when a game begins", () => {
    const after = { quiz: quiz({ players: [player("anna", false), player("bert")] }) };
    assert.equal(notice({ quiz: quiz() }, after, bert()), "anna has gone.");
    assert.equal(notice(after, after, bert()), undefined);
    assert.equal(notice(lobby("q1"), { quiz: quiz() }, bert()), "");
    assert.equal(notice({}, lobby(), bert()), undefined);
});
