// The page shows what the server says about the quiz, and sends what the player does. It knows no answer before the
// question is over.
import { find, play } from "/arcade.js";
import { notice } from "./notices.js";

const element = (name, properties = {}) => Object.assign(document.createElement(name), properties);
let session;
let view = {};
/** The question that this player has answered. */
let answered;

async function call(path, content) {
    try {
        await session.call(path, content);
        return true;
    } catch (error) {
        const reasons = {
            gone: "That game has ended.", hasStarted: "That game has started.", isFull: "That game is full.",
            invalidSettings: "There are not that many questions, or no category is chosen.",
            notYourTurn: "It is no longer your turn.", inAnotherGame: "You are in another game: leave it first.",
        };
        find("message").textContent = reasons[error.reason] ?? error.message;
        return false;
    }
}

/** When the connection broke, if that was after the last view. */
let broken;
/** When the latest connection was begun, by the server's clock. A view that was sent before is of the time before. */
let connected = 0;
/** The game that this player leaves. */
let leaving;

function watch({ state }) {
    if (state === "waiting") broken ??= Date.now();
    if (state === "connecting") connected = Date.now() + session.clockOffset;
}

function show(next, sent) {
    const { quiz } = view;
    const text = notice(view, next, {
        name: session.user, away: broken && (Date.now() - broken) / 1000, hasLeft: leaving !== undefined && leaving === quiz?.id,
        answered: answered !== undefined && answered === questionKey(quiz),
    });
    if (text !== undefined) find("message").textContent = text;
    if (sent >= connected) broken = undefined;
    if (!quiz) leaving = undefined;
    view = next;
    find("lobby").hidden = Boolean(view.quiz);
    find("quiz").hidden = !view.quiz;
    if (view.quiz) showQuiz(view.quiz);
    else showLobby();
}

function showLobby() {
    answered = undefined;
    find("open").replaceChildren(...(view.open ?? []).map(({ id, name, host, players }) => {
        const button = element("button", { type: "button", textContent: "Join" });
        button.addEventListener("click", () => call("/quiz/join", { quiz: id }));
        const item = element("li", { textContent: `${name}, hosted by ${host}, ${players} of 4 ` });
        item.append(button);
        return item;
    }));
    if (!view.open?.length) find("open").append(element("li", { textContent: "There is none at present." }));
    const fields = find("categories");
    if (!fields.querySelector("input")) {
        for (const [name, count] of Object.entries(view.categories ?? {}).sort()) {
            const label = element("label");
            label.append(element("input", { type: "checkbox", name: "category", value: name, checked: true }), ` ${name} (${count})`);
            fields.append(label);
        }
    }
}

function showQuiz(quiz) {
    find("title").textContent = quiz.name;
    find("players").replaceChildren(...quiz.players.map(({ name, points, isPresent }) => element("li", {
        textContent: `${name}: ${points}${isPresent ? "" : " (gone)"}`,
        className: name === quiz.turn ? "turn" : "",
    })));
    find("start").hidden = quiz.phase !== "open" || quiz.host !== session.user;
    const last = quiz.last;
    const what = last && (last.answer === undefined ? "did not answer" : last.points || last.right ? `has ${last.points} points` : "was wrong");
    find("last").textContent = last ? `${last.player} ${what}.${last.right ? ` Right: ${last.right}.` : ""}` : "";
    if (quiz.phase === "over") {
        const best = Math.max(...quiz.players.map(({ points }) => points));
        find("question").textContent = `The end. First: ${quiz.players.filter(({ points }) => points === best).map(({ name }) => name).join(", ")}.`;
    } else if (quiz.phase === "open") {
        find("question").textContent = `Waiting for players, at most four, until ${quiz.host} starts the game.`;
    }
    tick();
}

/** A question as one player is asked it; `undefined` without one. */
function questionKey(quiz) { return quiz && `${quiz.id} ${quiz.current} ${quiz.shown}`; }

let timer;

/** What depends on the time: the countdown, and whether this player may answer. */
function tick() {
    clearTimeout(timer);
    const quiz = view.quiz;
    const isRunning = quiz?.phase === "running";
    find("time").hidden = !isRunning;
    if (!isRunning) return find("answers").replaceChildren();
    const now = Date.now() + session.clockOffset;
    // The server sends the question when it is to be shown.
    const isShown = now >= quiz.shown && quiz.question !== undefined;
    find("time").value = isShown ? Math.max(0, (quiz.deadline - now) / (quiz.deadline - quiz.shown)) : 1;
    const key = questionKey(quiz);
    const mayAnswer = isShown && quiz.turn === session.user && answered !== key;
    find("question").textContent = isShown ?
        `${quiz.current + 1} of ${quiz.questions}, ${quiz.turn}’s turn: ${quiz.question}` :
        `Question ${quiz.current + 1} of ${quiz.questions} for ${quiz.turn} in ${Math.max(0, Math.ceil((quiz.shown - now) / 1000))}…`;
    const shown = `${key} ${isShown} ${mayAnswer}`;
    if (find("answers").dataset.shown !== shown || find("answers").children.length === 0) {
        find("answers").dataset.shown = shown;
        find("answers").replaceChildren(...(isShown ? quiz.answers : []).map((text, answer) => {
            const button = element("button", { type: "button", textContent: text, disabled: !mayAnswer });
            button.addEventListener("click", async () => {
                answered = key;
                tick();
                // The id makes a repeated call the same answer.
                await call("/quiz/answer", { quiz: quiz.id, question: quiz.current, answer, id: crypto.randomUUID() });
            });
            return button;
        }));
    }
    timer = setTimeout(tick, 100);
}

find("host").addEventListener("submit", (event) => {
    event.preventDefault();
    const { name, questions, seconds } = event.target.elements;
    const categories = [...event.target.querySelectorAll("input[name=category]:checked")].map(({ value }) => value);
    call("/quiz/host", {
        id: crypto.randomUUID(),
        settings: { name: name.value, categories, questions: Number(questions.value), seconds: Number(seconds.value) },
    });
});
find("start").addEventListener("submit", (event) => {
    event.preventDefault();
    // The game may have ended since the click.
    if (view.quiz) call("/quiz/start", { quiz: view.quiz.id });
});
find("leave").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!view.quiz) return;
    leaving = view.quiz.id;
    call("/quiz/leave", { quiz: leaving });
});

await play("quiz", { quiz: ({ json, sent }) => show(json, sent) }, (begun) => (session = begun), watch);
