// Evaluates the cases of a file of JSON lines, and writes a line with the outcome of each. For RandomTests.swift.

import { readFileSync } from "node:fs";

import { run } from "./cases.js";

const lines = readFileSync(process.argv[2], "utf8").split("\n");
const outcomes = lines.filter((line) => line !== "").map((line) => JSON.stringify(run(JSON.parse(line))));
process.stdout.write(outcomes.join("\n") + "\n");
