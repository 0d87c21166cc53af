// Types of redisdc.js: a client for the mailboxes of a RedisDC gateway. The interface of the gateway is docs/http.md.

/** A JSON value. Numbers beyond 2^53 lose digits in JavaScript. */
export type JSONValue = null | boolean | number | string | JSONValue[] | { [name: string]: JSONValue };

/** The word of a `urn:redisdc:` problem of docs/http.md, or a failure that only a client sees. */
export type GatewayErrorType =
    // The session or the login
    | "unsigned" | "unknown-session" | "logged-in-elsewhere" | "bad-signature" | "stale" | "nonce-used" | "cookie"
    | "bad-credential"
    // The call
    | "malformed" | "origin" | "forbidden" | "not-found" | "method-not-allowed" | "not-acceptable"
    | "cursor" | "id-used" | "refused" | "too-large" | "content-type" | "upgrade"
    // Limits and availability
    | "too-many-requests" | "too-many-streams" | "mailbox-full" | "internal" | "unavailable"
    // No reply, or not one of the gateway
    | "network" | "protocol"
    | (string & {});

/** A failed call. */
export class GatewayError extends Error {
    readonly name: "GatewayError";
    /** Decide by this. */
    readonly type: GatewayErrorType;
    /** The HTTP status, if there was a reply. */
    readonly status?: number;
    /** The server's time in milliseconds since 1970, with errors of the status 401. */
    readonly time?: number;
    /** Why the application refuses a call, with the type `refused`: a word of the application. */
    readonly reason?: string;
    /** The least time in milliseconds after which to try again, if the server has named one. */
    readonly retryAfter?: number;
    /** Whether the call may have taken effect. A send can be repeated with the same id. */
    readonly mayHaveRun: boolean;
    /** Whether the same call can succeed later without any change. */
    readonly isTransient: boolean;
}

/** A message of the mailbox. Exactly one of `json`, `text` and `base64` is present. */
export interface Message {
    /** The position after the message. */
    readonly cursor: string;
    readonly index: number;
    /** Empty if another program sent the message without one. */
    readonly id: string;
    readonly type?: string;
    /** The sender, as the gateway has authenticated it. Absent if the message was not sent through a gateway. */
    readonly from?: string;
    /** Milliseconds since 1970. */
    readonly sent: number;
    readonly headers: { readonly [name: string]: string };
    readonly json?: JSONValue;
    readonly text?: string;
    readonly base64?: string;
}

/** A message to send. Give exactly one of `json`, `text` and `base64`. */
export type OutgoingMessage = {
    /** At most 255 bytes. */
    type?: string;
    headers?: { [name: string]: string };
    /** The age in milliseconds at which the message expires, from 1. */
    ttl?: number;
    /** A later message with the same key replaces this one while it is in the mailbox. */
    collapse?: string;
} & ({ json: JSONValue } | { text: string } | { base64: string });

export interface MessageEvent {
    readonly kind: "message";
    readonly cursor: string;
    readonly message: Message;
}

/** Messages are lost, or may come a second time: see the statuses of `GET /v1/mail` in docs/http.md. */
export interface GapEvent {
    readonly kind: "gap";
    readonly status: "reset" | "forked" | "truncated";
    /** The index of the first message that is left. Only with `truncated`. */
    readonly first?: number;
    /** Where reading continues. */
    readonly cursor: string;
}

/** A newer reader of the device has begun. The last event. */
export interface SupersededEvent {
    readonly kind: "superseded";
    readonly cursor?: string;
}

export type MailEvent = MessageEvent | GapEvent | SupersededEvent;

/** Server-sent events, WebSocket or long polls. `auto` tries them in this order. */
export type Transport = "events" | "websocket" | "poll";

/** What the reader of a mailbox does at present. */
export type ConnectionState =
    | { readonly state: "connecting" | "open"; readonly transport: Transport }
    | {
        readonly state: "waiting";
        readonly transport: Transport;
        /** The time in milliseconds until the next attempt. */
        readonly delay: number;
        /** Absent if the connection has ended as intended. */
        readonly error?: GatewayError;
    };

export interface FollowOptions {
    /** `auto` by default. Node before 22 has no WebSocket. */
    transport?: "auto" | Transport;
    /** The position after which to begin. Default: the last one that the device has acknowledged. */
    after?: string;
    /** Ends the reader: the iteration or the call throws the signal's reason. */
    signal?: AbortSignal;
    /** Receives each change of the connection. An error that it throws ends the reader. */
    onConnection?(state: ConnectionState): void;
}

/** A handler. The next message waits until its promise is fulfilled. */
export type Handler = (message: Message) => unknown;

/** Handlers by the type of messages. `*` receives those of all other types and those without one. */
export interface Handlers {
    [type: string]: Handler;
}

export interface HandleOptions extends FollowOptions {
    /** Receives the report of a loss, which is acknowledged when its promise is fulfilled. */
    onGap?(event: GapEvent): unknown;
    /**
     * Receives the error of a handler. If it does not throw, the message is acknowledged. Without it, an error of a
     * handler ends `handle`, and the message stays in the mailbox.
     */
    onError?(error: unknown, message: Message): unknown;
}

export interface CallOptions {
    signal?: AbortSignal;
    /** The time in milliseconds for the call with its retries. 30 seconds by default. */
    timeout?: number;
}

/** A session at the gateway. Its calls throw `GatewayError`, or the reason of an aborted signal. */
export interface Session {
    /** Identifies the session. Not secret. */
    readonly id: string;
    readonly user: string;
    readonly device: string;
    /** The end of the session, by the server's clock. Connect again before it. */
    readonly expires: Date;
    /** The server's time minus the local one in milliseconds. */
    readonly clockOffset: number;
    /** Why the session has ended, if it is known to have ended: `unknown-session` or `logged-in-elsewhere`. */
    readonly error?: GatewayError;

    /**
     * Sends messages to one or more mailboxes: all receive them, or none.
     *
     * Repeats the call with the same id when a reply is lost: the messages arrive once. After an error with
     * `mayHaveRun`, send again with the same id and content. Returns the index of the first and the last message for
     * each recipient.
     */
    send(
        to: string | readonly string[], messages: OutgoingMessage | readonly OutgoingMessage[],
        options?: CallOptions & {
            /** 1 to 128 bytes. Default: a random one. */
            id?: string;
        },
    ): Promise<{ id: string; indices: { [recipient: string]: [number, number] } }>;

    /**
     * Makes a call of the application at the gateway's origin: POST with JSON. Returns the reply, a JSON object.
     *
     * Repeats the call when its reply is lost, so its effect must be the same however often it comes: most have an id
     * in their content. The error `refused` has the application's `reason`.
     */
    call(
        path: string, content?: { [name: string]: JSONValue }, options?: CallOptions,
    ): Promise<{ [name: string]: JSONValue }>;

    /**
     * Acknowledges all messages up to a position: this device has processed them. The error `cursor` says that the
     * position is not, or no longer, in the mailbox; it is of no consequence after a later acknowledgement.
     */
    acknowledge(cursor: string, options?: CallOptions): Promise<void>;

    /**
     * Delivers the messages of the mailbox in order, across connections, nodes and transports: nothing is lost, and
     * nothing comes twice. It acknowledges nothing. A device has one reader: a newer one ends this one with the event
     * `superseded`, after which the iteration ends.
     *
     * The next message is read when it is asked for: a slow loop slows the connection down. Throws `GatewayError` when
     * the session has ended, or the gateway refuses the reader. Connection failures are not errors: it connects again.
     */
    follow(options?: FollowOptions): AsyncIterableIterator<MailEvent>;

    /**
     * Calls a handler for each message, one at a time and in order, and acknowledges the message when the handler has
     * finished. A message that no handler takes is acknowledged. After a crash between a handler and its
     * acknowledgement the message comes again: handlers should be idempotent.
     *
     * Returns when a newer reader of the device has begun. Acknowledges what was handled before it returns or throws,
     * if this takes no more than two seconds.
     */
    handle(handlers: Handlers, options?: HandleOptions): Promise<SupersededEvent>;

    /** Ends the session, and forgets the device: messages are no longer kept for it. */
    logOut(options?: CallOptions): Promise<void>;
}

/** What a store keeps of a session. The key cannot be exported. */
export interface SessionRecord {
    readonly id: string;
    readonly key: CryptoKey;
    readonly expires: number;
    readonly clockOffset: number;
    readonly acknowledged?: string;
}

/** Where sessions are kept. It must be able to keep a `CryptoKey`. */
export interface SessionStore {
    get(name: string): Promise<SessionRecord | undefined>;
    set(name: string, record: SessionRecord): Promise<unknown>;
    /** Deletes the record if it is that of this session. */
    delete(name: string, id: string): Promise<unknown>;
}

/** Times in milliseconds. */
export interface Timings {
    /** For the reply to a call. */
    request: number;
    /** For a call with its retries. */
    call: number;
    /** For the first sign of a stream. */
    open: number;
    /** A stream that has been silent for this time is closed. The gateway sends something every 15 seconds. */
    silence: number;
    /** The wait of a long poll: whole seconds, at most 60. */
    poll: number;
    /** The first delay between attempts, if the server has named none. */
    minDelay: number;
    /** The maximum delay between attempts, unless the server demands a longer one. */
    maxDelay: number;
    /** The first time after which a fallback tries the preferred transport again. */
    upgrade: number;
    /** The least time between two automatic acknowledgements. */
    acknowledge: number;
}

export interface ConnectOptions extends CallOptions {
    user: string;
    device: string;
    /** What the gateway's authenticator expects, or a function that returns it. Used only if no session is stored. */
    credential?: JSONValue | (() => JSONValue | Promise<JSONValue>);
    /** Default: IndexedDB in browsers, nothing in Node. */
    store?: SessionStore;
    /** Default: the global ones. */
    fetch?: typeof fetch;
    WebSocket?: typeof WebSocket;
    timings?: Partial<Timings>;
}

/**
 * Returns the stored session of a user and device; without one logs in.
 *
 * @param url the gateway's origin, like `https://chat.example`
 *
 * Tabs of one browser that connect at the same time share one login. A login ends an older session of the same user and
 * device. The token is made into a key that cannot be exported, and is not kept in any other form.
 */
export function connect(url: string | URL, options: ConnectOptions): Promise<Session>;

/** Makes the key of a session from its token. The key cannot be exported. */
export function importToken(token: string): Promise<CryptoKey>;

/** Returns the signature of a request, with the prefix `v1=`. */
export function sign(
    key: CryptoKey,
    request: {
        method: string;
        /** The path and the query exactly as sent. */
        target: string;
        session: string;
        /** Milliseconds since 1970. */
        time: number;
        nonce: string;
        body?: string;
    },
): Promise<string>;
