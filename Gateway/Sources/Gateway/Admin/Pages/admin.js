// The operators' page. All text from the server becomes the text of elements, never markup.

const byId = (id) => document.getElementById(id);
let csrf = "";
let snapshot;
let stream;

// MARK: Elements

/** Makes an element with properties, and children that are elements or text. */
function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name === "data") Object.assign(element.dataset, value);
        else element[name] = value;
    }
    element.append(...children.filter((child) => child !== undefined));
    return element;
}

const cell = (...children) => make("td", {}, ...children.map((child) => (child instanceof Node ? child : `${child}`)));
const number = (value) => make("td", { className: "number", textContent: `${value}` });
const more = (count) => make("li", { textContent: `and ${count} more` });
const muted = (text) => make("span", { className: "muted", textContent: text });

function age(milliseconds) {
    const seconds = Math.max(0, milliseconds) / 1000;
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    if (seconds < 120) return `${Math.round(seconds)} s`;
    if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
    return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

function size(bytes) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let unit = 0;
    for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
    return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

/** Replaces the children of an element. The focus stays at the button of the same action. */
function replace(parent, children) {
    const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    parent.replaceChildren(...children);
    if (key === undefined) return;
    const same = [...parent.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
    (same ?? byId("main")).focus({ preventScroll: true });
}

// MARK: Calls

async function call(path, content) {
    const response = await fetch(`/admin/${path}`, {
        method: content ? "POST" : "GET",
        headers: content ? { "Content-Type": "application/json", "X-CSRF-Token": csrf } : {},
        body: content && JSON.stringify(content),
    });
    const reply = response.status === 204 ? {} : await response.json().catch(() => ({}));
    if (response.ok) return reply;
    const error = new Error(reply.detail ?? `the status ${response.status}`);
    error.status = response.status;
    throw error;
}

async function open() {
    try {
        csrf = (await call("session")).csrf;
    } catch (error) {
        if (error.status === 401) return askForKey();
        byId("status").textContent = `not connected: ${error.message}`;
        return setTimeout(open, 2000);
    }
    byId("login").hidden = true;
    byId("board").hidden = byId("tools").hidden = false;
    follow();
}

function askForKey() {
    stream?.close();
    snapshot = undefined;
    byId("board").hidden = byId("tools").hidden = true;
    byId("login").hidden = false;
    byId("status").textContent = "not logged in";
    byId("key").focus();
}

/** Follows the state, unless the page is paused or hidden: without a stream the server reads nothing. */
function follow() {
    stream?.close();
    stream = undefined;
    if (byId("login").hidden === false) return;
    if (byId("pause").ariaPressed === "true" || document.hidden) {
        byId("status").textContent = "paused";
        return;
    }
    stream = new EventSource("/admin/events");
    stream.addEventListener("snapshot", ({ data }) => {
        snapshot = JSON.parse(data);
        byId("status").textContent = `live, ${new Date(snapshot.time).toLocaleTimeString()}`;
        draw();
    });
    stream.addEventListener("expired", askForKey);
    stream.addEventListener("error", () => {
        byId("status").textContent = "not connected";
        // A refused stream is closed for good: the session may have ended.
        if (stream?.readyState === EventSource.CLOSED) {
            stream = undefined;
            setTimeout(open, 2000);
        }
    });
}

// MARK: Draw

function draw() {
    const { resources = [], mailboxes = [], deadLetters = [], deadlocks = [], nodes = [] } = snapshot;
    const words = byId("filter").value.toLowerCase();
    const matches = ({ name }) => name.toLowerCase().includes(words);
    byId("namespace").textContent = snapshot.namespace;
    byId("faults").textContent = snapshot.faults.join("; ");
    const figures = {
        Sessions: snapshot.sessions ?? "?", Resources: resources.length,
        Waiting: resources.reduce((sum, { waiting }) => sum + waiting, 0),
        "Longest wait": age(Math.max(0, ...resources.map(({ longestWait = 0 }) => longestWait))),
        Deadlocks: deadlocks.length, Mailboxes: mailboxes.length,
        "Dead letters": deadLetters.reduce((sum, { count }) => sum + count, 0),
        "Damaged records": snapshot.damaged ?? "?",
    };
    replace(byId("figures"), Object.entries(figures).map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: `${value}` }))));
    byId("deadlocks-section").hidden = deadlocks.length === 0;
    replace(byId("deadlocks"), deadlocks.map((links) => make("li", { className: "warning",
        textContent: links.map((link) => `${link.waiter} waits for "${link.resource}", held by ${link.holder}`)
            .join("; ") })));
    byId("resources-note").textContent = snapshot.isEveryResource === false ? "Not all are shown." : "";
    replace(byId("resources"), resources.filter(matches).map(resourceRow));
    byId("mailboxes-note").textContent = snapshot.isEveryMailbox === false ? "Not all are shown." : "";
    replace(byId("mailboxes"), mailboxes.filter(matches).map(mailboxRow));
    byId("letters-section").hidden = deadLetters.length === 0;
    replace(byId("letters"), deadLetters.map(letterTable));
    replace(byId("nodes"), nodes.map(({ name, holds, waits }) =>
        make("tr", {}, cell(name), number(holds), number(waits))));
}

function resourceRow(resource) {
    const { name, kind, permits, available, waiting, longestWait, holders = [], waiters = [], holderCount } = resource;
    const held = holders.map((holder) => make("li", {},
        make("span", { textContent: holder.node }),
        muted(`${holder.count > 1 ? `${holder.count} × ` : ""}fence ${holder.fence}, ${age(holder.age)}`),
        actionButton("Release…", `release ${name} ${holder.id}`, `Release ${name}, held by ${holder.node}`,
            { action: "release", resource: name, holder: holder.id })));
    if (holderCount > holders.length) held.push(more(holderCount - holders.length));
    const waits = waiters.map((waiter) =>
        make("li", {}, make("span", { textContent: waiter.node }), muted(age(waiter.age))));
    if (waiters.length && waiting > waiters.length) waits.push(more(waiting - waiters.length));
    return make("tr", {}, make("th", { scope: "row", textContent: name }), cell(kind),
        number(available >= 2 ** 49 ? "open" : `${available}/${permits}`), number(waiting), number(longestWait === undefined ? "" : age(longestWait)),
        cell(make("ul", {}, ...held)), cell(make("ul", {}, ...waits)));
}

function mailboxRow({ name, count, bytes, listening, devices, deviceCount }) {
    const rows = devices.map((device) => make("li", {}, make("span", { textContent: device.name }),
        muted(`${device.lag} behind, seen ${age(snapshot.time - device.seen)} ago`)));
    if (deviceCount > devices.length) rows.push(more(deviceCount - devices.length));
    return make("tr", {}, make("th", { scope: "row", textContent: name }), number(count), number(size(bytes)),
        number(listening), cell(make("ul", {}, ...rows)));
}

function letterTable({ mailbox, count, letters }) {
    const title = make("h3", { textContent: `${mailbox}: ${count}` });
    if (!letters.length) return make("div", {}, title);
    const button = actionButton("Requeue these…", `requeue ${mailbox}`, `Requeue ${letters.length} of ${mailbox}`,
        { action: "requeue", mailbox, count: letters.length });
    const rows = letters.map((letter) => make("tr", {}, number(letter.index), cell(letter.type ?? ""),
        cell(letter.from ?? ""), number(size(letter.bytes)), number(age(snapshot.time - letter.sent))));
    const heads = ["Index", "Type", "From", "Size", "Age"].map((text) => make("th", { scope: "col", textContent: text,
        className: text === "Type" || text === "From" ? "" : "number" }));
    return make("div", {}, title, button,
        make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
}

// MARK: Changes

function actionButton(text, key, label, action) {
    const button = make("button", { type: "button", textContent: text, className: "danger", ariaLabel: label,
        data: { key } });
    button.addEventListener("click", () => ask(action).catch(report));
    return button;
}

function report(error) {
    if (error.status === 401) return askForKey();
    byId("faults").textContent = error.message;
}

/** Announces an action, asks, and confirms it. */
async function ask(action) {
    const { question, confirmation } = await call("announce", action);
    const dialog = byId("dialog");
    byId("dialog-text").textContent = question;
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
    if (dialog.returnValue !== "confirm") return;
    const { count } = await call("confirm", { confirmation });
    byId("status").textContent = action.action === "release" ? `released for ${count}` : `requeued ${count}`;
    follow();
}

byId("dialog-cancel").addEventListener("click", () => byId("dialog").close("cancel"));
byId("dialog-confirm").addEventListener("click", () => byId("dialog").close("confirm"));
byId("filter").addEventListener("input", () => snapshot && draw());
byId("pause").addEventListener("click", ({ target }) => {
    target.ariaPressed = target.ariaPressed === "true" ? "false" : "true";
    follow();
});
byId("logout").addEventListener("click", () => call("logout", {}).catch(() => {}).then(askForKey));
byId("login").addEventListener("submit", async (event) => {
    event.preventDefault();
    const key = byId("key").value;
    byId("key").value = byId("login-error").textContent = "";
    try {
        await call("login", { key });
        await open();
    } catch (error) {
        byId("login-error").textContent = error.message;
    }
});
document.addEventListener("visibilitychange", () => csrf && follow());
open();
