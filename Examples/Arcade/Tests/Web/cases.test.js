// The table of cases that the Swift tests evaluate too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { bits, run } from "./cases.js";

const cases = JSON.parse(readFileSync(new URL("../BETTests/cases.json", import.meta.url), "utf8"));

describe("the table of cases", () => {
    for (const [index, testCase] of cases.entries()) {
        const { note = "", tokens, offsets, value, error, at, refused } = testCase;
        const input = testCase.text ?? (tokens ?? testCase.runs ?? testCase.define.map(Object.values)).flat().join(" ");
        it(`case ${index}: ${input.slice(0, 60)} ${note}`, () => {
            const { message, ...outcome } = run(testCase);
            const expected = offsets === undefined ? {} : { tokens, offsets };
            if (value !== undefined) expected.bits = bits(value);
            if (error !== undefined) Object.assign(expected, { error, at });
            if (refused !== undefined) expected.refused = refused;
            assert.deepEqual(outcome, expected, message);
        });
    }
});
