// Random faults in a seeded order: whatever happens to the connections, each message comes once and in order.
import assert from "node:assert/strict";
import test from "node:test";
import { setUp, transports } from "./support/helpers.js";

const runs = Number(process.env.REDISDC_WEB_RUNS ?? 6);

/** A random number generator (mulberry32). */
function generator(seed) {
    return () => {
        seed = (seed + 0x6d2b79f5) | 0;
        let value = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
        return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
    };
}

for (const transport of ["auto", ...transports]) {
    for (let seed = 1; seed <= runs; seed++) {
        const title = `${transport}: nothing is lost, doubled or out of order (seed ${seed})`;
        test(title, { timeout: 600_000 }, async (t) => {
            const random = generator(seed);
            const timings = { upgrade: 50, open: 2000, request: 2000 };
            const { gateway, session } = await setUp(t, { longestPoll: 20 }, { timings });
            const faults = {};
            const chance = (name, probability) => {
                const happens = random() < probability;
                if (happens) faults[name] = (faults[name] ?? 0) + 1;
                return happens;
            };
            gateway.fault = ({ path }) => {
                if (chance("drop", 0.05)) return "drop";
                if (chance("lose", 0.05) && path !== "/v1/events") return "lose";
                if (chance("refuse", 0.05)) return gateway.problem("unavailable", 503);
                if (chance("nonce", 0.03)) return gateway.problem("nonce-used", 401, { body: { time: gateway.time } });
                if (chance("malformed", 0.03)) return { body: "<html>" };
                return undefined;
            };
            gateway.streamFault = (piece) => {
                if (chance("cut", 0.05)) return "drop";
                if (chance("half", 0.05)) return "half";
                if (chance("double", 0.1)) return [piece, piece];
                if (chance("garbage", 0.03)) return [typeof piece === "string" ? "data: {\n\n" : "{"];
                return undefined;
            };
            const count = 300;
            const received = [];
            const handled = session.handle({
                "*": async ({ text }) => {
                    received.push(Number(text));
                    if (random() < 0.05) await new Promise((resolve) => setTimeout(resolve, random() * 10));
                    if (received.length === count) throw "all";
                },
            }, { transport, onError: (error) => { throw error; } });
            const sends = (async () => {
                for (let number = 1; number <= count;) {
                    const size = Math.min(1 + Math.floor(random() * 20), count + 1 - number);
                    const texts = Array.from({ length: size }, (_, index) => ({ text: `${number + index}` }));
                    // A reply that is not the gateway's is an error of the call: repeated under its id, it is safe. So is
                    // a clock that another call, whose reply came late, has set back.
                    const id = `s-${number}`;
                    while (!await session.send("alice", texts, { id }).catch((error) => {
                        if (!["protocol", "nonce-used", "stale"].includes(error.type)) throw error;
                    }));
                    number += size;
                    if (chance("bye", 0.1)) gateway.bye("restart", 1);
                    if (chance("clock", 0.05)) gateway.clockOffset += 100_000;
                }
            })();
            await Promise.all([assert.rejects(handled, (error) => error === "all"), sends]);
            assert.deepEqual(received, Array.from({ length: count }, (_, index) => index + 1));
            assert.equal(gateway.messages.length, count);
            assert.ok(Object.keys(faults).length >= 3, JSON.stringify(faults));
        });
    }
}
