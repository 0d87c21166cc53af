// The example of the README, as it stands there.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { FakeGateway } from "./support/fakeGateway.js";
import { until } from "./support/helpers.js";

test("the example of the README sends and receives a message", async (t) => {
    const gateway = await FakeGateway.start();
    t.after(() => gateway.stop());
    const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
    const [, example] = /```js\n([^]*?)```/.exec(readme);
    const code = example.replace(/import (.*) from "(.*)";/, (_, names) => `const ${names} = module;`);
    assert.notEqual(code, example);
    const run = Object.getPrototypeOf(async () => {}).constructor;
    const lines = [];
    const module = await import("../redisdc.js");
    const show = (line) => lines.push(line);
    const running = run("module", "url", "credential", "show", code)(module, gateway.url, "secret", show);
    await until("the message is acknowledged", () => gateway.acknowledged === gateway.cursor(1));
    assert.deepEqual(lines, ["alice: hello"]);
    gateway.supersede();
    await running;
});
