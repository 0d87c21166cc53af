// The page shows the letters that the server has dealt, and sends the words. The server counts the points.
import { find, play } from "/arcade.js";
import { addLocalScore, fillScores, localScores } from "/scores.js";

const element = (name, properties = {}) => Object.assign(document.createElement(name), properties);
const holes = Array.from({ length: 9 }, (_, hole) => {
    const button = element("button", { type: "button", disabled: true });
    button.addEventListener("click", () => caught(hole));
    return button;
});
find("holes").append(...holes);
let session;
let game;

// A place is the index of a letter in the game. Each is up, caught, in the word, or in a word that was taken.
function begin(id, { letters, letterSeconds, elapsed }) {
    game = { id, letters, letterSeconds, began: performance.now() - elapsed * 1000, up: undefined, rack: [], word: [], words: [] };
    for (const name of ["start", "scores"]) find(name).hidden = true;
    find("game").hidden = false;
    find("message").textContent = "";
    find("game").focus();
    tick();
}

function tick() {
    const now = game;
    if (!now) return;
    const place = Math.floor((performance.now() - now.began) / (now.letterSeconds * 1000));
    if (place >= now.letters.length) return finish();
    if (place !== now.place) {
        now.place = now.up = place;
        show();
    }
    find("time").value = 1 - (performance.now() - now.began) / (now.letters.length * now.letterSeconds * 1000);
    setTimeout(tick, 50);
}

function caught(hole) {
    if (game?.up === undefined || game.letters[game.up].hole !== hole) return;
    game.rack.push(game.up);
    game.up = undefined;
    show();
}

function spell(place) {
    game.rack = game.rack.filter((other) => other !== place);
    game.word.push(place);
    show();
}

function unspell() {
    if (game.word.length) game.rack.push(game.word.pop());
    show();
}

function take() {
    if (game.word.length) game.words.push(game.word);
    game.word = [];
    show();
}

const text = (places) => places.map((place) => game.letters[place].letter).join("");

function show() {
    const up = game.up === undefined ? undefined : game.letters[game.up];
    holes.forEach((button, hole) => {
        button.textContent = up?.hole === hole ? up.letter : "";
        button.disabled = up?.hole !== hole;
        button.ariaLabel = up?.hole === hole ? `letter ${up.letter}` : "empty";
    });
    find("rack").replaceChildren(...game.rack.map((place) => {
        const button = element("button", { type: "button", textContent: game.letters[place].letter });
        button.addEventListener("click", () => spell(place));
        return button;
    }));
    find("word").textContent = text(game.word);
    find("words").textContent = game.words.map(text).join(", ");
}

addEventListener("keydown", (event) => {
    if (!game || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Enter") {
        // A focused button would be clicked too.
        event.preventDefault();
        take();
    } else if (event.key === "Backspace") {
        unspell();
    } else if (/^[a-z]$/i.test(event.key)) {
        const letter = event.key.toLowerCase();
        const up = game.up === undefined ? undefined : game.letters[game.up];
        const place = game.rack.find((place) => game.letters[place].letter === letter);
        if (up?.letter === letter) caught(up.hole);
        else if (place !== undefined) spell(place);
    }
});
find("take").addEventListener("click", take);

async function finish() {
    take();
    const { id, words } = game;
    game = undefined;
    find("game").hidden = true;
    find("message").textContent = "Counting…";
    try {
        const result = await session.call("/words/finish", { id, words });
        const list = result.words.map(({ word, points }) => `${word} ${points}`).join(", ") || "no words";
        find("message").textContent = `${result.score} points: ${list}. Your best: ${result.best}, rank ${result.rank}. Level ${result.level}.`;
        addLocalScore(localStorage, "words", result.score, Date.now());
    } catch (error) {
        find("message").textContent = `Not counted: ${error.message}`;
    }
    await showScores();
}

async function showScores() {
    find("start").hidden = false;
    try {
        const { top, week, level } = await session.call("/words/scores");
        fillScores(find("top"), top);
        fillScores(find("week"), week);
        const local = localScores(localStorage, "words");
        fillScores(find("local"), local.map((entry, index) => ({ rank: index + 1, ...entry })));
        find("scores").hidden = false;
        find("message").textContent ||= `Level ${level}`;
    } catch (error) {
        find("message").textContent ||= error.message;
    }
}

find("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    find("start").hidden = true;
    const id = crypto.randomUUID();
    try {
        begin(id, await session.call("/words/start", { id }));
    } catch (error) {
        find("message").textContent = `Not started: ${error.message}`;
        find("start").hidden = false;
    }
});

await play("words", {}, (connected) => {
    session = connected;
    if (!game) showScores();
});
