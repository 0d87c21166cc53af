import { connect } from "../../redisdc.js";
import { FakeGateway } from "./fakeGateway.js";

/** The transports that this runtime offers: Node before 22 has a WebSocket with --experimental-websocket only. */
export const transports = ["events", "poll", ...(globalThis.WebSocket ? ["websocket"] : [])];

/** Short delays. The times after which a test fails are long: a busy machine is slow. */
export const timings = { minDelay: 2, maxDelay: 20, poll: 1000, acknowledge: 1 };

/** Starts a gateway and a session, which end with the test. */
export async function setUp(test, options = {}, more = {}) {
    const gateway = await FakeGateway.start(options);
    test.after(() => gateway.stop());
    return { gateway, session: await connectTo(gateway, more) };
}

export function connectTo(gateway, more = {}) {
    return connect(gateway.url, {
        user: "alice", device: "phone", credential: "secret", ...more, timings: { ...timings, ...more.timings },
    });
}

/** Reads events until there are a number of messages. */
export async function messages(events, count) {
    const found = [];
    while (found.length < count) {
        const { value, done } = await events.next();
        if (done) break;
        if (value.kind === "message") found.push(value.message);
    }
    return found;
}

/**
 * Repeats a scene until it returns true, with times that are twice as long each time. Gateway and client are in this one
 * process: if it stands still for longer than a time of the scene, that time is up before the client reads the answer.
 */
export async function slower(what, scene) {
    for (let factor = 1; factor <= 32; factor *= 2) if (await scene(factor)) return;
    throw new Error(`it is never so: ${what}`);
}

/** Waits for a condition. */
export async function until(what, condition) {
    const end = Date.now() + 120_000;
    while (!condition()) {
        if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 2));
    }
}

export const texts = (messages) => messages.map((message) => message.text);
export const numbered = (count, first = 1) =>
    Array.from({ length: count }, (_, index) => ({ text: `${first + index}` }));
