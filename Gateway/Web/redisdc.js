// A client for the mailboxes of a RedisDC gateway, for pages and for Node 20 or later. It has no dependencies.
//
// The interface of the gateway is docs/http.md; the types are in redisdc.d.ts. A page needs a secure context (HTTPS or
// localhost): browsers offer WebCrypto only there.

/** A failed call. Decide by `type`: a word of docs/http.md, or `network` or `protocol`. */
export class GatewayError extends Error {
    constructor(type, { title, detail, status, time, reason, retryAfter, mayHaveRun = false, cause } = {}) {
        super([title, detail].filter(Boolean).join(": ") || type, cause === undefined ? undefined : { cause });
        Object.assign(this, { name: "GatewayError", type, status, time, reason, retryAfter, mayHaveRun });
    }

    /** Whether the same call can succeed later without any change. */
    get isTransient() {
        return ["network", "unavailable", "internal", "too-many-requests", "too-many-streams"].includes(this.type);
    }
}

/** Ends an attempt to follow a mailbox, to begin another one after a delay in milliseconds. */
class Restart {
    constructor(delay, reason) {
        Object.assign(this, { delay, reason });
    }
}

/** The error types after which a session is of no further use. */
const endsSession = ["unknown-session", "logged-in-elsewhere"];

/** The error types, besides the transient ones, after which a reader connects again, perhaps with another transport. */
const followsAfter = ["protocol", "upgrade", "not-acceptable", "stale", "nonce-used"];

const defaultTimings = {
    request: 15_000, // for the reply to a call
    call: 30_000, // for a call with its retries
    open: 10_000, // for the first byte of a stream
    silence: 40_000, // a stream with nothing at all, not even a comment
    poll: 25_000, // the wait of a long poll
    minDelay: 1_000, // the first delay between attempts
    maxDelay: 30_000,
    upgrade: 60_000, // the first time after which a fallback tries the preferred transport again
    acknowledge: 250, // between two automatic acknowledgements
};

// MARK: Signatures

const utf8 = new TextEncoder();
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

function subtle() {
    const subtle = globalThis.crypto?.subtle;
    if (!subtle) throw new Error("WebCrypto is not available: a page needs HTTPS or localhost");
    return subtle;
}

/** Makes the key of a session from its token. The key cannot be exported. */
export function importToken(token) {
    return subtle().importKey("raw", utf8.encode(token), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

/** Returns the signature of a request, with the prefix `v1=`. The body is a text. */
export async function sign(key, { method, target, session, time, nonce, body = "" }) {
    const hash = hex(await subtle().digest("SHA-256", utf8.encode(body)));
    const text = ["v1", method, target, session, time, nonce, hash].join("\n");
    return "v1=" + hex(await subtle().sign("HMAC", key, utf8.encode(text)));
}

/** Returns random text of 22 characters: 128 bits. */
function randomText() {
    const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// MARK: Time and cancellation

/** An AbortController that also ends with a parent's signal, until it is released. */
class Scope {
    #controller = new AbortController();
    #parent;
    #abort = () => this.#controller.abort(this.#parent.reason);
    lastHeard = Date.now();

    constructor(parent) {
        this.#parent = parent;
        if (parent?.aborted) this.#abort();
        else parent?.addEventListener("abort", this.#abort, { once: true });
    }

    get signal() {
        return this.#controller.signal;
    }

    abort(reason) {
        this.#controller.abort(reason);
    }

    /** Waits for an operation that ends with this scope's signal. The scope ends with an error after a time. */
    async within(milliseconds, what, operation) {
        const error = () => new GatewayError("network", { detail: what, mayHaveRun: true });
        const timer = setTimeout(() => this.abort(error()), milliseconds);
        try {
            return await operation();
        } finally {
            clearTimeout(timer);
            this.lastHeard = Date.now();
        }
    }

    /** Ends what still uses the signal, and leaves no listener at the parent. */
    release() {
        this.#parent?.removeEventListener("abort", this.#abort);
        this.#controller.abort(new Restart(0, "released"));
    }
}

/** Waits; throws the signal's reason when it is aborted. */
function sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
        const abort = () => {
            clearTimeout(timer);
            reject(signal.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", abort);
            resolve();
        }, milliseconds);
        if (signal?.aborted) abort();
        else signal?.addEventListener("abort", abort, { once: true });
    });
}

/** Calls a function when a browser is online again, or its page is visible again. Returns a function that ends this. */
function onWake(wake) {
    const page = globalThis.document;
    const online = () => wake("online");
    const visible = () => page?.visibilityState !== "hidden" && wake("visible");
    globalThis.addEventListener?.("online", online);
    globalThis.addEventListener?.("pageshow", visible);
    page?.addEventListener("visibilitychange", visible);
    return () => {
        globalThis.removeEventListener?.("online", online);
        globalThis.removeEventListener?.("pageshow", visible);
        page?.removeEventListener("visibilitychange", visible);
    };
}

/** The delay before another attempt. Random, so that clients that lost a node do not all come back at once. */
function backoff(failures, timings, { floor = 0, minDelay = timings.minDelay } = {}) {
    const longest = Math.min(timings.maxDelay, minDelay * 2 ** Math.min(failures, 16));
    return Math.max(longest * (0.5 + Math.random() / 2), floor * (1 + Math.random() / 4));
}

// MARK: Replies

function parse(text, what) {
    try {
        const value = JSON.parse(text);
        if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
    } catch {
        // Reported below, like JSON that is no object.
    }
    throw new GatewayError("protocol", { detail: `${what} is not a JSON object`, mayHaveRun: true });
}

/** The error that problem details describe; `protocol` or `unavailable` if it is not the gateway's reply. */
function errorOf(problem, { status = problem?.status, retryAfter } = {}) {
    const type = /^urn:redisdc:(.+)$/.exec(problem?.type)?.[1];
    const { title, detail, time, reason } = problem ?? {};
    const mayHaveRun = status >= 500 && problem?.mayHaveRun !== false;
    if (type) return new GatewayError(type, { title, detail, status, time, reason, retryAfter, mayHaveRun });
    // A proxy has answered.
    const kind = status >= 500 ? "unavailable" : status === 429 ? "too-many-requests" : "protocol";
    return new GatewayError(kind, { detail: `a reply with the status ${status}`, status, retryAfter, mayHaveRun });
}

/** The milliseconds of a Retry-After header, which is a number of seconds or a date. */
function retryAfterOf(headers) {
    const text = headers.get("retry-after");
    if (!text) return undefined;
    const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
    return Number.isFinite(milliseconds) ? Math.max(0, milliseconds) : undefined;
}

/** Sends a request, and returns the reply if it is a success. Its body has not been read. */
async function exchange(fetch, url, init, scope, milliseconds) {
    const send = async () => {
        const response = await fetch(url, {
            // The login's cookie is not used. Redirects would leave the place for which the request was signed.
            ...init, credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
            signal: scope.signal,
        });
        // Nobody waits for a reply that comes after the end.
        if (scope.signal.aborted) response.body?.cancel().catch(() => {});
        return response;
    };
    const response = await scope.within(milliseconds, "no reply in time", () => network(scope, send));
    if (response.ok) return response;
    const text = await scope.within(milliseconds, "no reply in time", () => network(scope, () => response.text()));
    let problem;
    try {
        problem = JSON.parse(text);
    } catch {
        // Not from the gateway: the status decides.
    }
    throw errorOf(problem, { status: response.status, retryAfter: retryAfterOf(response.headers) });
}

/**
 * Runs an operation of the network: its failure is the reason of the scope's end, or `network`.
 *
 * Ends with the scope even if the operation does not: Node's fetch can miss the signal after garbage was collected.
 */
async function network(scope, operation) {
    const { signal } = scope;
    if (signal.aborted) throw signal.reason;
    let abort;
    const aborted = new Promise((_, reject) => (abort = () => reject(signal.reason)));
    signal.addEventListener("abort", abort, { once: true });
    try {
        return await Promise.race([operation(), aborted]);
    } catch (cause) {
        if (signal.aborted) throw signal.reason;
        if (cause instanceof GatewayError || cause instanceof Restart) throw cause;
        throw new GatewayError("network", { detail: "the connection has failed", mayHaveRun: true, cause });
    } finally {
        signal.removeEventListener("abort", abort);
    }
}

/** Tries an operation until it succeeds, fails permanently, or its time is up. */
async function retrying(timings, { timeout = timings.call, signal }, operation) {
    const end = performance.now() + timeout;
    for (let failures = 0, mayHaveRun = false; ; failures++) {
        const scope = new Scope(signal);
        try {
            return await operation(scope, Math.max(1, Math.min(timings.request, end - performance.now())));
        } catch (error) {
            if (signal?.aborted) throw signal.reason;
            if (!(error instanceof GatewayError)) throw error;
            // A refusal of a later attempt does not tell whether an earlier one had an effect.
            mayHaveRun ||= error.mayHaveRun;
            error.mayHaveRun = mayHaveRun;
            const delay = backoff(failures, timings, { floor: error.retryAfter });
            if (!error.isTransient || performance.now() + delay > end) throw error;
            await sleep(delay, signal);
        } finally {
            scope.release();
        }
    }
}

// MARK: Where browsers keep sessions

/** Keeps sessions in IndexedDB: their keys can be used by this origin's pages, and exported by nobody. */
function browserStore() {
    if (!globalThis.indexedDB) return undefined;
    const run = (mode, operation) => new Promise((resolve, reject) => {
        const opening = indexedDB.open("redisdc", 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore("sessions");
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
            const database = opening.result;
            const transaction = database.transaction("sessions", mode);
            let result;
            operation(transaction.objectStore("sessions"), (value) => (result = value));
            transaction.oncomplete = () => (database.close(), resolve(result));
            transaction.onabort = () => (database.close(), reject(transaction.error));
        };
    });
    return {
        get: (name) => run("readonly", (sessions, done) => {
            const request = sessions.get(name);
            request.onsuccess = () => done(request.result);
        }),
        set: (name, record) => run("readwrite", (sessions) => sessions.put(record, name)),
        // A newer session of another tab stays.
        delete: (name, id) => run("readwrite", (sessions) => {
            const request = sessions.get(name);
            request.onsuccess = () => request.result?.id === id && sessions.delete(name);
        }),
    };
}

/** Runs an operation of a store. A browser that keeps nothing, as in a private window, can still use the session. */
async function kept(operation) {
    try {
        return await operation();
    } catch {
        return undefined;
    }
}

// MARK: Log in

/**
 * Returns the stored session of a user and device; without one logs in.
 *
 * Tabs of one browser that connect at the same time share one login. Throws a GatewayError.
 */
export async function connect(url, options) {
    const { user, device } = options;
    const origin = new URL(url).origin;
    if (!["", "/"].includes(new URL(url).pathname)) throw new TypeError("the gateway's URL has no path");
    const settings = {
        origin, user, device, name: JSON.stringify([origin, user, device]),
        fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
        WebSocket: options.WebSocket ?? globalThis.WebSocket,
        store: options.store ?? browserStore(),
        timings: { ...defaultTimings, ...options.timings },
    };
    const open = async () => {
        const record = await kept(() => settings.store?.get(settings.name));
        if (record && record.expires > Date.now() + record.clockOffset + 60_000) return new Session(settings, record);
        return logIn(settings, options);
    };
    const locks = settings.store && globalThis.navigator?.locks;
    return locks ? locks.request("redisdc " + settings.name, { signal: options.signal }, open) : open();
}

async function logIn(settings, { credential, signal, timeout }) {
    if (typeof credential === "function") credential = await credential();
    if (credential === undefined) {
        throw new GatewayError("unknown-session", { detail: "there is no stored session and no credential" });
    }
    const { fetch, origin, user, device, timings } = settings;
    const body = JSON.stringify({ user, device, credential });
    const record = await retrying(timings, { signal, timeout }, async (scope, milliseconds) => {
        const begin = Date.now();
        const headers = { "Content-Type": "application/json" };
        const response = await exchange(fetch, origin + "/v1/sessions", { method: "POST", headers, body }, scope,
            milliseconds);
        const text = await scope.within(milliseconds, "no reply in time", () => network(scope, () => response.text()));
        const { session, token, expires, time, cursor } = parse(text, "the reply to the login");
        const isComplete = [session, token].every((part) => typeof part === "string") && Number.isFinite(expires);
        if (!isComplete) throw new GatewayError("protocol", { detail: "the reply to the login is incomplete" });
        const clockOffset = time - (begin + Date.now()) / 2 || 0;
        return { id: session, key: await importToken(token), expires, clockOffset, acknowledged: cursor };
    });
    const session = new Session(settings, record);
    await kept(() => settings.store?.set(settings.name, record));
    return session;
}

// MARK: Session

/** A session at the gateway: `connect` makes it. */
class Session {
    #settings;
    #record;
    #error;

    constructor(settings, record) {
        this.#settings = settings;
        this.#record = record;
    }

    /** Identifies the session. Not secret. */
    get id() { return this.#record.id; }
    get user() { return this.#settings.user; }
    get device() { return this.#settings.device; }
    /** The end of the session, by the server's clock. */
    get expires() { return new Date(this.#record.expires); }
    /** The server's time minus the local one in milliseconds. */
    get clockOffset() { return this.#record.clockOffset; }
    /** Why the session has ended, if it is known to have ended. */
    get error() { return this.#error; }

    /** Sends messages to mailboxes. The same id with the same content has one effect, however often it is sent. */
    async send(to, messages, { id = randomText(), signal, timeout } = {}) {
        const content = { to: [to].flat(), id, messages: [messages].flat() };
        const reply = await this.#call("POST", "/v1/send", { content, signal, timeout });
        return { id, indices: reply.indices };
    }

    /** Makes a call of the application: POST with JSON. It is repeated when its reply is lost. Returns the reply. */
    call(path, content = {}, { signal, timeout } = {}) {
        return this.#call("POST", path, { content, signal, timeout });
    }

    /** Acknowledges all messages up to a position. */
    async acknowledge(cursor, { signal, timeout } = {}) {
        await this.#call("POST", "/v1/ack", { content: { cursor }, signal, timeout });
        this.#record.acknowledged = cursor;
    }

    /** Ends the session, and forgets the device: messages are no longer kept for it. */
    async logOut({ signal, timeout } = {}) {
        try {
            await this.#call("DELETE", "/v1/sessions", { signal, timeout });
        } catch (error) {
            if (error.type !== "unknown-session") throw error;
        }
        await this.#end(new GatewayError("unknown-session", { detail: "this session was logged out" }));
    }

    /** Delivers the messages of the mailbox in order, across connections. Acknowledges nothing. */
    follow(options = {}) {
        const events = this.#events(options);
        return iterable(options.signal, (stop) => withoutPositions(events(stop)));
    }

    /**
     * Calls a handler for each message, by its type, one at a time and in order. Acknowledges a message when its
     * handler has finished.
     *
     * Returns the event `superseded` when a newer reader of the device has begun.
     */
    async handle(handlers, options = {}) {
        const { signal, onGap, onError } = options;
        const events = iterable(signal, this.#events(options));
        const acknowledger = new Acknowledger(this, this.#settings.timings);
        try {
            for await (const event of events) {
                if (event.kind === "superseded") return event;
                if (event.kind === "gap") await onGap?.(event);
                if (event.kind === "message") await handleMessage(handlers, event.message, signal, onError);
                acknowledger.add(event.cursor);
            }
        } finally {
            await acknowledger.finish();
        }
    }

    // MARK: Calls

    async #call(method, target, { content, ...options }) {
        const body = content && JSON.stringify(content);
        return retrying(this.#settings.timings, options, async (scope, milliseconds) => {
            const response = await this.#request(method, target, body, scope, milliseconds);
            return this.#json(response, scope, milliseconds);
        });
    }

    /** Reads a reply's body; an empty object if there is none. */
    async #json(response, scope, milliseconds) {
        if (response.status === 204) return {};
        const text = await scope.within(milliseconds, "no reply in time", () => network(scope, () => response.text()));
        return parse(text, "the reply");
    }

    /** Sends a signed request, and signs it once more if the clock was wrong or the nonce used. */
    async #request(method, target, body, scope, milliseconds, more = {}) {
        const { fetch, origin } = this.#settings;
        for (const corrected = new Set(); ;) {
            if (this.#error) throw this.#error;
            const { session, time, nonce, signature } = await this.#signature(method, target, body);
            const headers = { "X-Session": session, "X-Time": `${time}`, "X-Nonce": nonce, "X-Signature": signature };
            if (body !== undefined) headers["Content-Type"] = "application/json";
            try {
                return await exchange(fetch, origin + target, { method, headers: { ...headers, ...more }, body }, scope,
                    milliseconds);
            } catch (error) {
                await this.#note(error);
                if (!this.#corrects(error, corrected)) throw error;
            }
        }
    }

    async #signature(method, target, body) {
        const parts = { session: this.id, time: Math.round(Date.now() + this.clockOffset), nonce: randomText() };
        return { ...parts, signature: await sign(this.#record.key, { method, target, body, ...parts }) };
    }

    /** Takes note of an error that ends the session. Afterwards `connect` finds no stored session. */
    async #note(error) {
        if (endsSession.includes(error.type)) await this.#end(error);
    }

    /** Corrects what an error names. Returns whether the same request can be signed again at once. */
    #corrects(error, corrected) {
        if (!["stale", "nonce-used"].includes(error.type) || corrected.has(error.type)) return false;
        if (error.type === "stale" && !Number.isFinite(error.time)) return false;
        corrected.add(error.type);
        if (error.type === "stale") {
            this.#record.clockOffset = error.time - Date.now();
            const { store, name } = this.#settings;
            kept(async () => store && (await store.get(name))?.id === this.id && store.set(name, this.#record));
        }
        return true;
    }

    #end(error) {
        this.#error ??= error;
        return kept(() => this.#settings.store?.delete(this.#settings.name, this.id));
    }

    // MARK: Follow

    /** Returns a function that follows the mailbox until a signal is aborted. */
    #events({ transport = "auto", after, onConnection }) {
        const known = ["events", "websocket", "poll"];
        const isUsable = (name) => known.includes(name) && (name !== "websocket" || this.#settings.WebSocket);
        const names = transport === "auto" ? known.filter(isUsable) : [transport];
        if (!names.every(isUsable)) throw new TypeError(`the transport ${transport} is not available`);
        return (stop) => this.#follow(names, after, stop, onConnection);
    }

    /** Yields events until the reader is superseded. An event `position` only moves the position. */
    async *#follow(names, after, stop, onConnection = () => {}) {
        const { timings } = this.#settings;
        const duplicates = new Duplicates();
        const corrected = new Set();
        let current = 0; // the index of the transport
        let failures = 0;
        let upgrades = 0;
        let minDelay; // from the server
        for (;;) {
            if (stop.aborted) throw stop.reason;
            const attempt = new Scope(stop);
            const begin = Date.now();
            const transport = names[current];
            const unlisten = onWake((reason) => {
                const isSilent = Date.now() - attempt.lastHeard > timings.silence / 2;
                if (reason === "online" || isSilent) attempt.abort(new Restart(0, reason));
            });
            const goBack = () => attempt.abort(new Restart(0, "upgrade"));
            const upgrade = current > 0 ? setTimeout(goBack, timings.upgrade * 2 ** upgrades) : undefined;
            let isOpen = false;
            let failure;
            try {
                onConnection({ state: "connecting", transport });
                for await (const event of this.#read(transport, after, attempt)) {
                    if (event.kind === "opened") {
                        if (!isOpen) onConnection({ state: "open", transport });
                        isOpen = true;
                        if (current === 0) upgrades = 0;
                        corrected.clear();
                    } else if (event.kind === "retry") {
                        minDelay = event.delay;
                    } else if (event.kind === "superseded") {
                        yield event;
                        return;
                    } else {
                        const news = duplicates.filter(event);
                        if (!news) continue;
                        after = news.cursor;
                        failures = 0;
                        yield news;
                        if (stop.aborted) throw stop.reason;
                    }
                }
                failure = new GatewayError("network", { detail: "the stream has ended" });
            } catch (error) {
                failure = attempt.signal.aborted ? attempt.signal.reason : error;
            } finally {
                clearTimeout(upgrade);
                unlisten();
                attempt.release();
            }
            if (stop.aborted) throw stop.reason;
            if (isOpen && Date.now() - begin > timings.maxDelay) failures = 0;
            await this.#note(failure);
            let delay;
            if (failure instanceof Restart) {
                delay = failure.delay;
                if (failure.reason === "upgrade") {
                    upgrades = Math.min(upgrades + 1, 5);
                    current = 0;
                }
            } else if (!(failure instanceof GatewayError)) {
                throw failure;
            } else if (transport === "websocket" && this.#corrects(failure, corrected)) {
                delay = 0;
            } else if (failure.isTransient || followsAfter.includes(failure.type)) {
                delay = backoff(failures++, timings, { floor: failure.retryAfter, minDelay });
                // Something on the way, like a proxy, may not pass this transport.
                if (!isOpen && !failure.type.startsWith("too-many")) current = (current + 1) % names.length;
            } else {
                throw failure;
            }
            const error = failure instanceof Restart ? undefined : failure;
            onConnection({ state: "waiting", transport, delay, error });
            await this.#pause(delay, stop);
        }
    }

    /** Waits, at most until a browser is online again. */
    async #pause(delay, stop) {
        if (!delay) return;
        const wait = new Scope(stop);
        const unlisten = onWake((reason) => wait.abort(new Restart(0, reason)));
        try {
            await sleep(delay, wait.signal);
        } catch (reason) {
            if (!(reason instanceof Restart)) throw reason;
        } finally {
            unlisten();
            wait.release();
        }
    }

    #read(transport, after, attempt) {
        if (this.#error) throw this.#error;
        switch (transport) {
            case "events": return this.#readEvents(after, attempt);
            case "websocket": return this.#readSocket(after, attempt);
            default: return this.#readPages(after, attempt);
        }
    }

    /** Server-sent events, read with fetch: EventSource can neither sign its requests nor wait for a slow reader. */
    async *#readEvents(after, attempt) {
        const { timings } = this.#settings;
        const target = "/v1/events" + query({ after });
        const response = await this.#request("GET", target, undefined, attempt, timings.open,
            { Accept: "text/event-stream" });
        if (!response.headers.get("content-type")?.startsWith("text/event-stream") || !response.body) {
            throw new GatewayError("protocol", { detail: "the reply is not a stream of events" });
        }
        const reader = response.body.getReader();
        const parser = new EventParser();
        try {
            for (let isOpen = false; ; isOpen = true) {
                // A proxy that collects the whole reply passes nothing: the gateway sends its first line at once.
                const { done, value } = await attempt.within(isOpen ? timings.silence : timings.open,
                    "the stream was silent for too long", () => network(attempt, () => reader.read()));
                if (done) return;
                if (!isOpen) yield { kind: "opened" };
                for (const event of parser.parse(value)) yield* mailEvents(event);
            }
        } finally {
            reader.cancel().catch(() => {});
        }
    }

    async *#readPages(after, attempt) {
        const { timings } = this.#settings;
        for (let wait = 0; ; wait = Math.round(timings.poll / 1000)) {
            // The first poll does not wait: its reply shows that the gateway can be reached.
            const milliseconds = wait * 1000 + timings.request;
            const target = "/v1/mail" + query({ after, wait });
            const response = await this.#request("GET", target, undefined, attempt, milliseconds);
            const page = await this.#json(response, attempt, milliseconds);
            yield { kind: "opened" };
            if (page.status === "superseded") yield { kind: "superseded", cursor: page.cursor };
            if (!["messages", "timedOut"].includes(page.status)) yield* gapEvents(page);
            yield* pageEvents(page);
            after = checkedCursor(page.cursor);
        }
    }

    async *#readSocket(after, attempt) {
        const { timings, origin, WebSocket } = this.#settings;
        const target = "/v1/socket" + query({ after });
        const socket = await network(attempt, () => new WebSocket(origin.replace(/^http/, "ws") + target, "ql.v1"));
        const inbox = new Inbox(attempt.signal, () => socket.close(1000));
        socket.onmessage = ({ data }) => inbox.add(typeof data === "string" ? data : "");
        socket.onclose = ({ code }) => inbox.end(code);
        socket.onerror = () => inbox.end(1006);
        socket.onopen = async () => {
            try {
                socket.send(JSON.stringify({ auth: await this.#signature("GET", target) }));
            } catch {
                socket.close();
            }
        };
        const probe = () => {
            // Browsers do not show the gateway's pings. An acknowledged position can be acknowledged again: the gateway
            // answers, and nothing changes.
            const cursor = this.#record.acknowledged;
            if (cursor && socket.readyState === 1) socket.send(JSON.stringify({ ack: cursor }));
        };
        try {
            for (let isOpen = false; ;) {
                const timer = isOpen ? setTimeout(probe, timings.silence / 2) : undefined;
                let text;
                try {
                    text = await attempt.within(isOpen ? timings.silence : timings.open,
                        "the socket was silent for too long", () => inbox.next());
                } finally {
                    clearTimeout(timer);
                }
                if (text === undefined) return yield* closedEvents(inbox.code);
                const frame = parse(text, "a frame of the socket");
                if (frame.ready) isOpen = true;
                if (frame.ready) yield { kind: "opened" };
                if (frame.error && !isOpen) throw errorOf(frame.error);
                if (frame.messages) yield* pageEvents(frame);
                if (frame.gap) yield* gapEvents(frame.gap);
                if (frame.superseded) yield { kind: "superseded", cursor: frame.superseded.cursor };
                if (frame.bye) throw goodbye(frame.bye);
            }
        } finally {
            socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
            inbox.release();
            if (socket.readyState < 2) socket.close(1000);
        }
    }
}

// MARK: Events of the transports

/** The query part of a target: cursors need no escaping. */
function query(parameters) {
    const text = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined)).toString();
    return text && "?" + text;
}

function checkedCursor(cursor) {
    if (typeof cursor === "string" && cursor) return cursor;
    throw new GatewayError("protocol", { detail: "an event has no cursor" });
}

function messageEvent(message) {
    return { kind: "message", cursor: checkedCursor(message?.cursor), message };
}

function* pageEvents({ messages, cursor }) {
    if (!Array.isArray(messages)) throw new GatewayError("protocol", { detail: "a page has no messages" });
    for (const message of messages) yield messageEvent(message);
    if (messages.at(-1)?.cursor !== cursor) yield { kind: "position", cursor: checkedCursor(cursor) };
}

function* gapEvents({ status, first, cursor }) {
    if (!["reset", "forked", "truncated"].includes(status)) {
        throw new GatewayError("protocol", { detail: `an unknown status: ${status}` });
    }
    yield { kind: "gap", status, cursor: checkedCursor(cursor), ...(first === undefined ? {} : { first }) };
}

/** What an event `bye` leads to. */
function goodbye({ reason, retry }) {
    if (reason === "expired") return new GatewayError("unknown-session", { detail: "the session has expired" });
    // The server has chosen a random time for each client.
    return new Restart(Number.isFinite(retry) ? Math.max(0, retry) : 1000, "bye");
}

function* mailEvents({ retry, id, type, data }) {
    if (retry !== undefined) yield { kind: "retry", delay: retry };
    const value = data === undefined ? undefined : parse(data, "an event");
    if (type === "superseded") yield { kind: "superseded", cursor: value?.cursor };
    else if (type === "bye") throw goodbye(value ?? {});
    else if (type === "gap") yield* gapEvents(value ?? {});
    else if (type === "message" && value) yield messageEvent(value);
    else if (id) yield { kind: "position", cursor: id };
}

function* closedEvents(code) {
    if (code === 4001) throw new GatewayError("unknown-session", { detail: "the session has ended" });
    if (code === 4002) yield { kind: "superseded" };
    else if (code === "overflow") throw new Restart(0, code);
    else throw new GatewayError("network", { detail: `the socket was closed with the code ${code}` });
}

/** Reads a stream of server-sent events, piece by piece. */
class EventParser {
    #decoder = new TextDecoder();
    #rest = "";
    #event = {};
    #data = [];

    /** Returns the events that a piece of the stream completes. */
    parse(bytes) {
        const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
        // A carriage return at the end may be the first half of a line end.
        const lines = text.split(/\r\n|\n|\r(?!$)/);
        this.#rest = lines.pop();
        return lines.map((line) => this.#line(line)).filter(Boolean);
    }

    #line(line) {
        if (line === "") {
            const event = this.#event;
            if (this.#data.length) Object.assign(event, { type: event.type ?? "message", data: this.#data.join("\n") });
            else delete event.type;
            this.#event = {};
            this.#data = [];
            return Object.keys(event).length ? event : undefined;
        }
        const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (field === "data") this.#data.push(value);
        if (field === "event") this.#event.type = value;
        if (field === "id") this.#event.id = value;
        if (field === "retry" && /^\d+$/.test(value)) this.#event.retry = Number(value);
    }
}

/**
 * The frames of a WebSocket that were not read yet.
 *
 * A browser's WebSocket cannot be told to wait. When too much has come, the connection ends: the reader takes what is
 * here, and connects again at its position.
 */
class Inbox {
    static maxCharacters = 1 << 20;
    #texts = [];
    #characters = 0;
    #wake;
    #signal;
    #close;
    #aborted = () => this.#wake?.();
    code;

    constructor(signal, close) {
        this.#signal = signal;
        this.#close = close;
        signal.addEventListener("abort", this.#aborted, { once: true });
    }

    add(text) {
        if (this.code !== undefined) return;
        if (this.#texts.length && this.#characters + text.length > Inbox.maxCharacters) {
            this.end("overflow");
            return this.#close();
        }
        this.#texts.push(text);
        this.#characters += text.length;
        this.#wake?.();
    }

    end(code) {
        this.code ??= code;
        this.#wake?.();
    }

    /** Waits for a frame. Returns `undefined` at the end. */
    async next() {
        for (;;) {
            if (this.#signal.aborted) throw this.#signal.reason;
            if (this.#texts.length) break;
            if (this.code !== undefined) return undefined;
            await new Promise((resolve) => (this.#wake = resolve));
        }
        const text = this.#texts.shift();
        this.#characters -= text.length;
        return text;
    }

    release() {
        this.#signal.removeEventListener("abort", this.#aborted);
    }
}

/** Recognizes messages that were delivered before: by their position, and by their id after Redis lost the position. */
class Duplicates {
    static maxCount = 4096;
    #seen = new Set();

    /** Returns the event without a message that was seen, and remembers the message. `undefined`: nothing is new. */
    filter(event) {
        if (event.kind !== "message") return event;
        const isOldPosition = this.#seeing("cursor " + event.cursor);
        const isOldMessage = Boolean(event.message.id) && this.#seeing("id " + event.message.id);
        if (isOldPosition) return undefined;
        return isOldMessage ? { kind: "position", cursor: event.cursor } : event;
    }

    #seeing(key) {
        const isOld = this.#seen.has(key);
        this.#seen.add(key);
        if (this.#seen.size > 2 * Duplicates.maxCount) this.#seen.delete(this.#seen.values().next().value);
        return isOld;
    }
}

// MARK: Consumers

async function* withoutPositions(events) {
    for await (const event of events) if (event.kind !== "position") yield event;
}

/** Makes the iterator of a generator that ends with a signal, and at once when it is returned. */
function iterable(signal, makeEvents) {
    const scope = new Scope(signal);
    const closed = new Restart(0, "closed");
    const events = makeEvents(scope.signal);
    return {
        async next() {
            try {
                const result = await events.next();
                if (result.done) scope.release();
                return result;
            } catch (error) {
                scope.release();
                if (error === closed) return { done: true, value: undefined };
                throw error;
            }
        },
        async return(value) {
            scope.abort(closed);
            try {
                await events.return();
            } catch (error) {
                if (error !== closed) throw error;
            }
            scope.release();
            return { done: true, value };
        },
        [Symbol.asyncIterator]() {
            return this;
        },
    };
}

async function handleMessage(handlers, message, signal, onError) {
    const type = message.type ?? "";
    // Types come from other users: "constructor" is none of the handlers.
    const name = Object.hasOwn(handlers, type) ? type : "*";
    try {
        if (Object.hasOwn(handlers, name)) await handlers[name](message);
    } catch (error) {
        if (signal?.aborted || !onError) throw error;
        await onError(error, message);
    }
}

/** Acknowledges positions in the background: the latest one, one call at a time. */
class Acknowledger {
    #session;
    #timings;
    #pending;
    #running;
    #pacing = new AbortController();
    #calls = new AbortController();

    constructor(session, timings) {
        this.#session = session;
        this.#timings = timings;
    }

    /** Acknowledges a position soon. */
    add(cursor) {
        this.#pending = cursor;
        this.#running ??= this.#run();
    }

    async #run() {
        while (this.#pending !== undefined && !this.#calls.signal.aborted) {
            const cursor = this.#pending;
            this.#pending = undefined;
            let pause = this.#timings.acknowledge;
            try {
                await this.#session.acknowledge(cursor, { signal: this.#calls.signal });
            } catch (error) {
                // A position that is no longer in the mailbox is of no consequence: the stream reports what is missing.
                if (error.isTransient && !this.#pacing.signal.aborted) {
                    this.#pending ??= cursor;
                    pause = this.#timings.maxDelay;
                }
            }
            await sleep(pause, this.#pacing.signal).catch(() => {});
        }
        this.#running = undefined;
    }

    /** Waits for the last acknowledgement, for a short time. */
    async finish() {
        this.#pacing.abort();
        const timer = setTimeout(() => this.#calls.abort(), 2000);
        await this.#running;
        clearTimeout(timer);
    }
}
