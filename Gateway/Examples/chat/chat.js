// A chat between the users of a gateway. Texts of others reach the page through textContent only, so they cannot
// contain markup.
import { connect } from "./redisdc.js";

const find = (id) => document.getElementById(id);
const [state, loginForm, room, log, sendForm] = ["state", "login", "room", "log", "send"].map(find);
let session;

function show(text, { from, className = "" } = {}) {
    const item = document.createElement("li");
    item.className = className;
    if (from) item.append(Object.assign(document.createElement("b"), { textContent: `${from}: ` }));
    item.append(text);
    log.append(item);
    log.scrollTop = log.scrollHeight;
}

/** Each browser is a device of its own. */
function device() {
    localStorage.device ??= crypto.randomUUID();
    return localStorage.device;
}

async function logIn(user, credential) {
    session = await connect(location.origin, { user, device: device(), credential });
    localStorage.user = user;
    loginForm.hidden = true;
    room.hidden = false;
    sendForm.elements.to.focus();
    follow();
}

async function follow() {
    const followed = session;
    try {
        await session.handle({
            chat: ({ from, text }) => show(text ?? "", { from }),
        }, {
            onGap: () => show("Some messages are missing.", { className: "note" }),
            onConnection: ({ state: connection, transport }) => {
                state.textContent = connection === "open" ? `${session.user}, connected (${transport})` : "Connecting…";
            },
        });
        state.textContent = "Continued in another window. Reload this page to take it back.";
    } catch (error) {
        // After a log out there is another session, or none.
        const reason = error.type === "logged-in-elsewhere" ? "Logged in elsewhere" : error.message;
        if (session === followed) leave(reason);
    }
}

function leave(reason) {
    session = undefined;
    delete localStorage.user;
    loginForm.hidden = false;
    room.hidden = true;
    log.replaceChildren();
    state.textContent = reason;
    loginForm.elements.user.focus();
}

loginForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
        // A real application asks for a password, and its authenticator checks it.
        await logIn(loginForm.elements.user.value, null);
    } catch (error) {
        state.textContent = error.message;
    }
});

sendForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { to, text } = sendForm.elements;
    const line = text.value;
    text.value = "";
    try {
        await session.send(to.value, { type: "chat", text: line });
        show(line, { from: `to ${to.value}`, className: "own" });
    } catch (error) {
        text.value ||= line;
        show(`Not sent: ${error.message}`, { className: "note" });
    }
});

find("logout").addEventListener("click", async () => {
    try {
        const ended = session;
        session = undefined;
        await ended.logOut();
        leave("Logged out");
    } catch (error) {
        leave(`Not logged out: ${error.message}`);
    }
});

// A page that is loaded again continues with its session. Without one, it asks.
if (localStorage.user) logIn(localStorage.user).catch((error) => leave(error.message));
