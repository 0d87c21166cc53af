// A gateway in memory that follows docs/http.md, and breaks its connections as a test demands. It checks signatures
// with an implementation of its own.
import { createHash, createHmac, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { SocketPeer } from "./socketPeer.js";

export class FakeGateway {
    token = randomBytes(32).toString("base64url");
    session = randomBytes(16).toString("base64url");
    clockOffset = 0;
    /** What every node knows. */
    messages = [];
    firstIndex = 1;
    epoch = 1;
    acknowledged;
    sends = new Map();
    nonces = new Set();
    refusal; // of all signed calls: a type
    /** The requests so far: method, path, query and body. */
    requests = [];
    /** Called for each request; may return "drop", "hang", "lose" (the reply) or a reply {status, headers, body}. */
    fault = () => undefined;
    /** Called for each piece of a stream; may return a list of pieces to write instead, "drop" or "half". */
    streamFault = () => undefined;
    /** The streams that are open. */
    streams = new Set();
    longestPoll = 60_000;

    static async start(options = {}) {
        const gateway = Object.assign(new FakeGateway(), options);
        gateway.server = createServer((request, response) => gateway.#serve(request, response));
        gateway.server.on("upgrade", (request, socket) => gateway.#upgrade(request, socket));
        await new Promise((resolve) => gateway.server.listen(0, "127.0.0.1", resolve));
        gateway.url = `http://127.0.0.1:${gateway.server.address().port}`;
        return gateway;
    }

    async stop() {
        for (const stream of this.streams) stream.end();
        this.server.closeAllConnections();
        await new Promise((resolve) => this.server.close(resolve));
    }

    get time() { return Date.now() + this.clockOffset; }

    cursor(index) { return `${this.epoch.toString(16).padStart(16, "0")}-${index}-8000000000000001`; }

    /** Stores messages, and returns their indices. */
    add(...messages) {
        for (const message of messages) {
            const index = (this.messages.at(-1)?.index ?? this.firstIndex - 1) + 1;
            this.messages.push({
                cursor: this.cursor(index), index, id: `m-${this.epoch}-${index}`, sent: this.time, headers: {},
                ...message,
            });
        }
        for (const stream of this.streams) stream.wake();
    }

    /** The page after a position. */
    page(after, limit = 100) {
        const position = after ?? this.acknowledged;
        const index = position ? Number(position.split("-")[1]) : 0;
        if (position && !position.startsWith(this.cursor(0).slice(0, 16))) {
            return { status: "reset", messages: [], cursor: this.cursor(0) };
        }
        const first = this.messages[0]?.index ?? this.firstIndex;
        if (index < first - 1) return { status: "truncated", first, messages: [], cursor: this.cursor(first - 1) };
        const messages = this.messages.filter((message) => message.index > index).slice(0, limit);
        const status = messages.length ? "messages" : "timedOut";
        return { status, messages, cursor: messages.at(-1)?.cursor ?? position ?? this.cursor(0), skipped: 0 };
    }

    /** Ends all streams as a newer reader does. */
    supersede() { for (const stream of this.streams) stream.supersede(); }

    bye(reason, retry) { for (const stream of this.streams) stream.bye(reason, retry); }

    /** A reply with problem details. */
    problem(type, status, more = {}) {
        return {
            status, headers: { "Content-Type": "application/problem+json", ...more.headers },
            body: JSON.stringify({ type: `urn:redisdc:${type}`, title: type, status, ...more.body }),
        };
    }

    #refused(method, target, parts, body) {
        const { session, time, nonce, signature } = parts;
        const refusal = (type) => this.problem(type, 401, { body: { time: this.time } });
        if (this.refusal) return refusal(this.refusal);
        if (session !== this.session) return refusal("unknown-session");
        const hash = createHash("sha256").update(body).digest("hex");
        const text = ["v1", method, target, session, time, nonce, hash].join("\n");
        const expected = "v1=" + createHmac("sha256", this.token).update(text).digest("hex");
        if (signature !== expected) return refusal("bad-signature");
        if (Math.abs(Number(time) - this.time) > 60_000) return refusal("stale");
        if (this.nonces.has(nonce)) return refusal("nonce-used");
        this.nonces.add(nonce);
        return undefined;
    }

    async #serve(request, response) {
        const chunks = [];
        try {
            for await (const chunk of request) chunks.push(chunk);
        } catch {
            return; // the client has gone
        }
        const body = Buffer.concat(chunks).toString();
        const url = new URL(request.url, this.url);
        const call = { method: request.method, path: url.pathname, query: Object.fromEntries(url.searchParams), body };
        call.headers = request.headers;
        this.requests.push(call);
        const fault = this.fault(call);
        if (fault === "drop") return request.socket.destroy();
        if (fault === "hang") return;
        const reply = typeof fault === "object" ? fault : await this.#reply(call, request, response);
        if (fault === "lose") return request.socket.destroy();
        if (!reply) return; // a stream
        const { status = 200, headers = { "Content-Type": "application/json" } } = reply;
        response.writeHead(status, { "Cache-Control": "no-store", ...headers }).end(reply.body);
    }

    async #reply(call, request, response) {
        const { method, path, query, body } = call;
        const ok = (value, status = 200) => ({ status, body: JSON.stringify(value) });
        if (method === "POST" && path === "/v1/sessions") {
            return ok({
                session: this.session, token: this.token, expires: this.time + 3_600_000, time: this.time,
                cursor: this.acknowledged ?? this.cursor(0),
            }, 201);
        }
        const { headers } = request;
        const parts = {
            session: headers["x-session"], time: headers["x-time"], nonce: headers["x-nonce"],
            signature: headers["x-signature"],
        };
        const refusal = this.#refused(method, request.url, parts, body);
        if (refusal) return refusal;
        switch (`${method} ${path}`) {
            case "DELETE /v1/sessions": return { status: 204 };
            case "POST /v1/ack": {
                this.acknowledged = JSON.parse(body).cursor;
                return { status: 204 };
            }
            case "POST /v1/send": return this.#send(JSON.parse(body), body, ok);
            case "GET /v1/mail": return ok(await this.#poll(query, request.socket));
            case "GET /v1/events": return void new EventStream(this, query.after, response);
            default: return this.problem("not-found", 404);
        }
    }

    #send({ to, id, messages }, body, ok) {
        const earlier = this.sends.get(id);
        if (earlier && earlier.body !== body) return this.problem("id-used", 409);
        if (!earlier) {
            this.sends.set(id, { body, index: (this.messages.at(-1)?.index ?? 0) + 1 });
            this.add(...messages.map((message, number) => ({ ...message, id: `gw-${id}/${number}`, from: "alice" })));
        }
        const { index } = this.sends.get(id);
        const range = [index, index + messages.length - 1];
        return ok({ id, indices: Object.fromEntries(to.map((name) => [name, range])) });
    }

    async #poll({ after, wait }, socket) {
        for (const stream of this.streams) stream.supersede();
        const end = Date.now() + Math.min(Number(wait ?? 30) * 1000, this.longestPoll);
        let superseded = false;
        const poll = { supersede: () => (superseded = true, poll.wake()), end: () => poll.wake(), bye() {}, wake() {} };
        this.streams.add(poll);
        socket.once("close", () => poll.supersede());
        while (this.page(after).status === "timedOut" && !superseded && Date.now() < end) {
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, end - Date.now());
                poll.wake = () => (clearTimeout(timer), resolve());
            });
        }
        this.streams.delete(poll);
        const page = this.page(after);
        return superseded ? { ...page, status: "superseded", messages: [] } : page;
    }

    #upgrade(request, socket) {
        const url = new URL(request.url, this.url);
        const call = { method: "GET", path: url.pathname, query: Object.fromEntries(url.searchParams), body: "" };
        this.requests.push(call);
        const fault = this.fault(call);
        if (fault) return socket.destroy();
        const peer = new SocketPeer(request, socket);
        const deadline = setTimeout(() => peer.close(1008), 5000);
        socket.on("close", () => clearTimeout(deadline));
        peer.onText = (text) => {
            clearTimeout(deadline);
            const { auth } = JSON.parse(text);
            const refusal = auth ? this.#refused("GET", request.url, auth, "") : this.problem("malformed", 400);
            if (refusal) {
                peer.send(JSON.stringify({ error: JSON.parse(refusal.body) }));
                return peer.close(1008);
            }
            new SocketStream(this, url.searchParams.get("after") ?? undefined, peer);
        };
    }
}

/** An open stream: subclasses say how it writes. */
class Stream {
    constructor(gateway, after) {
        Object.assign(this, { gateway, after, isOpen: true });
        for (const other of gateway.streams) other.supersede();
        gateway.streams.add(this);
    }

    wake() {
        while (this.isOpen) {
            const page = this.gateway.page(this.after);
            if (page.status === "timedOut") return;
            this.after = page.cursor;
            if (page.status === "messages") this.write(...this.pieces(page));
            else this.write(this.gap({ status: page.status, first: page.first, cursor: page.cursor }));
        }
    }

    write(...pieces) {
        for (const piece of pieces) {
            if (!this.isOpen) return;
            const fault = this.gateway.streamFault(piece);
            if (fault === "drop") return this.end();
            if (fault === "half") return this.#half(piece);
            for (const other of fault ?? [piece]) this.put(other);
        }
    }

    #half(piece) {
        this.putHalf(piece);
        this.end();
    }

    end() {
        this.isOpen = false;
        this.gateway.streams.delete(this);
        this.cut();
    }
}

class EventStream extends Stream {
    constructor(gateway, after, response) {
        super(gateway, after);
        this.response = response;
        response.on("close", () => this.end());
        response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
        response.write(gateway.firstLine ?? "retry: 5\n\n");
        setImmediate(() => this.wake());
    }

    event(name, data, id) { return `${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`; }
    pieces({ messages }) { return messages.map((message) => this.event("message", message, message.cursor)); }
    gap(gap) { return this.event("gap", gap, gap.cursor); }
    put(text) { this.response.write(text); }
    // In the middle of a line, and of a character if it has one.
    putHalf(text) { this.response.write(Buffer.from(text).subarray(0, Buffer.byteLength(text) / 2)); }
    cut() { setImmediate(() => this.response.destroy()); }
    supersede() {
        const cursor = this.after ?? this.gateway.cursor(0);
        this.put(this.event("superseded", { cursor }, cursor + ";superseded"));
        this.end();
    }
    bye(reason, retry) {
        this.put(`retry: ${retry}\n` + this.event("bye", { reason, retry }));
        this.end();
    }
}

class SocketStream extends Stream {
    constructor(gateway, after, peer) {
        super(gateway, after);
        this.peer = peer;
        peer.onText = (text) => {
            const frame = JSON.parse(text);
            gateway.frames?.push(frame);
            if (frame.ack) this.put({ acked: frame.ack });
        };
        peer.onClose = () => this.end();
        this.put({ ready: { time: gateway.time, expires: gateway.time + 3_600_000 } });
        setImmediate(() => this.wake());
    }

    pieces({ messages, cursor }) { return [{ messages, cursor }]; }
    gap(gap) { return { gap }; }
    put(frame) { this.peer.send(typeof frame === "string" ? frame : JSON.stringify(frame)); }
    putHalf(frame) { this.peer.sendHalf(JSON.stringify(frame)); }
    cut() { setImmediate(() => this.peer.socket.destroy()); }
    supersede() {
        this.put({ superseded: { cursor: this.after ?? this.gateway.cursor(0) } });
        this.#close(4002);
    }
    bye(reason, retry) {
        if (reason === "expired") return this.#close(4001);
        this.put({ bye: { reason, retry } });
        this.#close(1001);
    }
    #close(code) {
        this.isOpen = false;
        this.gateway.streams.delete(this);
        this.peer.close(code);
    }
}
