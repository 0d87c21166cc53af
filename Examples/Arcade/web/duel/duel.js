// The page shows the matches that the server sends, computes what the player puts together, and sends equations. The
// server computes them again, with the same evaluator.
import { find, play } from "/arcade.js";
import { ParsedExpression } from "/bet.js";

const element = (name, properties = {}) => Object.assign(document.createElement(name), properties);
const number = (value) => String(Math.round(value * 1e6) / 1e6);
let session;
let state;
/** The views of matches by opponent. */
const matches = new Map();
let selected;
/** The places of tokens in the selection, or a parenthesis or comma. */
let equation = [];

async function call(path, content) {
    try {
        find("message").textContent = "";
        return await session.call(path, content);
    } catch (error) {
        find("message").textContent = error.type === "refused" ? `${error.message} (${error.reason})` : error.message;
    }
}

function put(view) {
    const before = matches.get(view.opponent);
    if (before?.match === view.match && before.version > view.version) return;
    matches.set(view.opponent, view);
    if (before?.match !== view.match || before.round !== view.round || before.phase !== view.phase) {
        if (selected === view.opponent) equation = [];
    }
    selected ??= view.opponent;
}

async function load() {
    const loaded = await call("/duel/state");
    if (loaded) showState(loaded);
}

function showState(loaded) {
    state = loaded;
    for (const view of state.matches) put(view);
    if (state.found) selected = state.found;
    showWaiting(state.isWaiting);
    find("room").hidden = false;
    find("iq").textContent = `IQ ${state.iq}, tier “${state.tier}”. Toolbox: ${state.toolbox.join("  ") || "empty"}.`;
    find("friends").replaceChildren(...state.friends.map((name) => element("option", { value: name })));
    find("shop").replaceChildren(...Object.entries(state.prices).sort().map(([item, price]) => {
        const row = element("tr");
        const buy = element("button", { type: "button", textContent: `Buy for ${price}`, disabled: price > state.iq });
        buy.dataset.item = item;
        buy.addEventListener("click", () => trade({ item }));
        for (const content of [item, state.tutorial[item] ?? "a number", buy]) {
            const cell = element("td");
            cell.append(content);
            row.append(cell);
        }
        return row;
    }));
    show();
}

async function trade(what) {
    const traded = await call("/duel/trade", { ...what, id: crypto.randomUUID() });
    if (traded) showState(traded);
}

const phases = { make: "your turn to make", solve: "your turn to solve", wait: "their turn", over: "over" };

function show() {
    find("matches").replaceChildren(...[...matches.values()].map((view) => {
        const item = element("li");
        const button = element("button", {
            type: "button", textContent: `${view.opponent}: ${phases[view.phase]}`, ariaPressed: String(view.opponent === selected),
        });
        button.addEventListener("click", () => {
            selected = view.opponent;
            equation = [];
            show();
        });
        item.append(button);
        return item;
    }));
    const view = matches.get(selected);
    find("match").hidden = !view;
    if (view) showMatch(view);
}

function task(view) {
    if (view.phase === "make") return "Make an equation: its value is the puzzle.";
    if (view.phase === "solve") return `Come as close to ${number(view.target)} as you can.`;
    if (view.phase === "wait") return `It is the turn of ${view.opponent}.`;
    const { outcome, points, opponentsPoints, change, rounds } = view.result;
    const iq = `IQ ${change < 0 ? "−" : "+"}${Math.abs(change)}.`;
    if (outcome === "quit") return `The match was ended. ${iq}`;
    const words = { won: "You have won", lost: "You have lost", drawn: "A draw" }[outcome];
    const equations = rounds.map(({ made, target, solved, value }) =>
        `${made.join(" ")} = ${number(target)}, solved ${solved.join(" ")} = ${number(value)}`).join("; ");
    return `${words}, ${points} to ${opponentsPoints} points. ${iq} ${equations}.`;
}

function showMatch(view) {
    find("title").textContent = `${view.opponent}, round ${view.round + 1} of 2`;
    find("task").textContent = task(view);
    const mayPlay = view.phase === "make" || view.phase === "solve";
    find("moves").hidden = view.phase === "over";
    find("undo").disabled = find("play").disabled = !mayPlay || !equation.length;
    const add = (part) => {
        equation.push(part);
        showMatch(view);
    };
    find("tokens").replaceChildren(...(mayPlay ? [...view.selection.keys(), "(", ")", ","] : []).map((part) => {
        const isFree = typeof part === "string";
        const button = element("button", {
            type: "button", textContent: isFree ? part : view.selection[part], disabled: !isFree && equation.includes(part),
        });
        button.addEventListener("click", () => add(part));
        return button;
    }));
    const tokens = texts(view);
    find("equation").textContent = tokens.join(" ");
    find("value").textContent = "";
    if (!tokens.length) return;
    try {
        find("value").textContent = `= ${number(new ParsedExpression(tokens).value())}`;
    } catch (error) {
        find("value").textContent = error.message;
    }
}

const texts = (view) => equation.map((part) => typeof part === "string" ? part : view.selection[part]);

find("undo").addEventListener("click", () => {
    equation.pop();
    show();
});
find("play").addEventListener("click", async () => {
    const view = matches.get(selected);
    const content = { opponent: view.opponent, equation: texts(view), id: crypto.randomUUID() };
    find("play").disabled = true;
    await call("/duel/play", content);
    show();
});
find("quit").addEventListener("click", () => call("/duel/quit", { name: selected }));
find("challenge").addEventListener("submit", async (event) => {
    event.preventDefault();
    const opponent = event.target.elements.name.value;
    if (await call("/duel/begin", { opponent, id: crypto.randomUUID() })) selected = opponent;
});
find("friend").addEventListener("click", async () => {
    const changed = await call("/duel/friend", { name: find("challenge").elements.name.value });
    if (changed) showState(changed);
});
find("craft").addEventListener("submit", (event) => {
    event.preventDefault();
    trade({ equation: event.target.elements.equation.value.trim().split(/\s+/) });
});
find("random").addEventListener("click", () => search("/duel/random", { id: crypto.randomUUID() }));
find("cancel").addEventListener("click", () => search("/duel/random/cancel"));

async function search(path, content) {
    const found = await call(path, content);
    if (!found) return;
    showWaiting(found.isWaiting);
    if (found.opponent) {
        selected = found.opponent;
        show();
    }
}

/** The server knows whether the player waits, so a page that is loaded again goes on waiting. */
function showWaiting(isWaiting) {
    find("waiting").hidden = !isWaiting;
    find("random").disabled = isWaiting;
}

await play("duel", {
    duel: ({ json }) => {
        put(json);
        show();
        // The results that are counted at the end.
        if (json.phase === "over") load();
    },
    // An opponent was found, or the ticket has ended. The server begins the match, or goes on looking if the ticket was lost
    // with a node. The matchmaker sends JSON as text.
    match: () => load(),
    "match-ended": async ({ text }) => {
        await load();
        if (JSON.parse(text).reason === "timedOut" && !state?.isWaiting) find("message").textContent = "Nobody was found.";
    },
}, (connected) => {
    session = connected;
    load();
});
