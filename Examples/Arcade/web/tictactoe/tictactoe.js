// The page shows what the server says about the match, and sends moves. It knows no rules.
import { find, play } from "/arcade.js";

const names = { x: "cross", o: "circle", ".": "empty" };
const cells = Array.from({ length: 9 }, (_, cell) => {
    const button = document.createElement("button");
    button.addEventListener("click", () => mark(cell));
    return button;
});
find("board").append(...cells);
let session;
let view = {};

function text() {
    if (!view.match) return view.left ? "Your opponent has left. Waiting for another one…" : "Waiting for an opponent…";
    if (view.result) return { won: "You have won!", lost: "You have lost.", drawn: "A draw." }[view.result];
    return `You are ${view.mark} against ${view.opponent}. ${view.isNext ? "Your turn." : `${view.opponent}’s turn.`}`;
}

function show(next) {
    // It stays on the page until the next match: a view may come twice.
    const left = !next.match && (view.match ? !view.result : view.left);
    view = { ...next, left };
    find("message").textContent = text();
    find("board").hidden = !view.match;
    find("again").hidden = !view.result;
    cells.forEach((button, cell) => {
        const letter = view.cells?.[cell] ?? ".";
        button.textContent = { x: "✕", o: "◯", ".": "" }[letter];
        button.ariaLabel = `Row ${Math.floor(cell / 3) + 1}, column ${cell % 3 + 1}: ${names[letter]}`;
        button.disabled = !view.isNext || letter !== ".";
        button.classList.toggle("line", view.line?.includes(cell) ?? false);
    });
}

async function call(path, content) {
    try {
        await session.call(path, content);
    } catch (error) {
        find("message").textContent = error.type === "refused" ? text() : `Not played: ${error.message}`;
        show(view);
    }
}

async function mark(cell) {
    for (const button of cells) button.disabled = true;
    // The id makes a repeated call the same move.
    await call("/tictactoe/move", { match: view.match, cell, id: crypto.randomUUID() });
}

find("again").addEventListener("submit", (event) => {
    event.preventDefault();
    call("/tictactoe/again", { match: view.match });
});

show({});
await play("tictactoe", { tictactoe: ({ json }) => show(json) }, (connected) => (session = connected));
