// The parts that the pages of all games have in common: the name of the player, and the connection.
import { connect } from "/redisdc.js";

const find = (id) => document.getElementById(id);

/** A random text of 128 bits. */
function randomText() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** A labelled field of a form. */
function field(label, properties) {
    const element = document.createElement("label");
    element.append(label, Object.assign(document.createElement("input"), properties));
    return element;
}

/** Adds the form that asks for a name, as the first part of the page. */
function addLoginForm() {
    const form = Object.assign(document.createElement("form"), { id: "login", hidden: true });
    form.append(
        field("Your name ", {
            name: "name", required: true, pattern: "[A-Za-z0-9]{1,15}", maxLength: 15, autocomplete: "username",
            title: "1 to 15 letters or digits",
        }),
        Object.assign(document.createElement("button"), { textContent: "Log in" }));
    document.querySelector("main").prepend(form);
}

/** Asks for a name, unless this browser has one, and for its password if somebody else uses the name. */
async function logIn(asksPassword) {
    const form = find("login");
    let password;
    while (!localStorage.name || asksPassword) {
        form.hidden = false;
        if (asksPassword && !form.elements.password) {
            const label = field("Password, if it is your name", {
                name: "password", type: "password", autocomplete: "current-password", maxLength: 64,
            });
            form.insertBefore(label, form.querySelector("button"));
        }
        (form.elements.password ?? form.elements.name).focus();
        await new Promise((done) => form.addEventListener("submit", (event) => {
            event.preventDefault();
            done();
        }, { once: true }));
        localStorage.name = form.elements.name.value;
        password = form.elements.password?.value;
        asksPassword = false;
    }
    form.hidden = true;
    return { user: localStorage.name, credential: password ? { password } : localStorage.secret };
}

/** Returns why there is no connection at present: the words tell a player whether to look at the own network. */
function reasonToWait(error) {
    if (!navigator.onLine) return "No network. The page connects again by itself.";
    return error ? "The arcade cannot be reached. The page connects again by itself." : "Connecting…";
}

/**
 * Connects the page of a game, and keeps it connected.
 *
 * @param game the name of the game, which begins the name of the device: so the server knows which page is open
 * @param handlers the handlers of messages by type
 * @param onSession receives the session before the first message
 * @param onConnection receives each change of the connection
 */
export async function play(game, handlers, onSession, onConnection = () => {}) {
    addLoginForm();
    // The first browser that uses a name keeps it, by this secret.
    localStorage.secret ??= randomText();
    localStorage.device ??= crypto.randomUUID();
    const state = find("state");
    // A browser keeps a page that was left, with its connection, to show it again. Its player has gone nevertheless.
    const left = new AbortController();
    addEventListener("pagehide", () => left.abort());
    addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
    let asksPassword = false;
    for (;;) {
        const { user, credential } = await logIn(asksPassword);
        try {
            state.textContent = "Connecting…";
            const session = await connect(location.origin, {
                user, device: `${game}.${localStorage.device}`, credential,
            });
            onSession(session);
            await session.handle(handlers, {
                signal: left.signal,
                onConnection: (connection) => {
                    onConnection(connection);
                    if (connection.state === "open") state.textContent = user;
                    if (connection.state === "waiting") state.textContent = reasonToWait(connection.error);
                },
            });
            state.textContent = "Continued in another window. Reload this page to play here.";
            return;
        } catch (error) {
            if (left.signal.aborted) return;
            if (error.type === "bad-credential") {
                delete localStorage.name;
                asksPassword = true;
                find("login").elements.name.value = user;
                state.textContent = `“${user}” is taken, or is not a valid name: 1 to 15 letters or digits.`;
            } else if (error.type === "unknown-session") {
                // It has expired: log in again.
            } else {
                state.textContent = `${error.message}. Reload this page to go on.`;
                throw error;
            }
        }
    }
}

export { find };
