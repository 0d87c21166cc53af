// The types of redisdc.d.ts name what redisdc.js has, no less and no more.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import * as redisdc from "../redisdc.js";
import { setUp } from "./support/helpers.js";

const read = (path) => readFile(new URL(path, import.meta.url), "utf8");
const types = await read("../redisdc.d.ts");
const source = await read("../redisdc.js");

/** The text between a line that begins like this and the line that closes its bracket. */
function block(text, beginning) {
    const begin = text.indexOf("\n" + beginning);
    assert.notEqual(begin, -1, beginning);
    return text.slice(text.indexOf("\n", begin + 1), text.indexOf("\n}", begin));
}

/** The members that a block declares, each at the beginning of an indented line. */
const members = (block) => [...block.matchAll(/^ {4}(?:readonly )?(\w+)\??[(:]/gm)].map(([, name]) => name).sort();

/** The public properties and methods of an object and its class. */
function properties(object) {
    const names = [...Object.keys(object), ...Object.getOwnPropertyNames(Object.getPrototypeOf(object))];
    return names.filter((name) => name !== "constructor").sort();
}

test("the module exports the declared functions and classes", () => {
    const declared = [...types.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(declared.sort(), Object.keys(redisdc).sort());
});

test("a session and an error have the declared members", async (t) => {
    const { session } = await setUp(t);
    assert.deepEqual(members(block(types, "export interface Session {")), properties(session));
    const error = new redisdc.GatewayError("network");
    assert.deepEqual(members(block(types, "export class GatewayError")), properties(error));
});

test("the declared timings are those with a default", () => {
    assert.deepEqual(members(block(types, "export interface Timings {")), members(block(source, "const defaultTimings = {")));
});

test("each problem of the gateway's documentation has a type", async () => {
    const declaration = types.slice(types.indexOf("export type GatewayErrorType"));
    const declared = [...declaration.slice(0, declaration.indexOf(";")).matchAll(/"([a-z-]+)"/g)].map(([, word]) => word);
    const table = (await read("../../../docs/http.md")).matchAll(/^\| [45]\d\d \|([^|]*)\|/gm);
    const words = new Set([...table].flatMap(([, cell]) => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, word]) => word)));
    assert.ok(words.size > 10, [...words].join(" "));
    assert.deepEqual([...words].filter((word) => !declared.includes(word)), []);
});
