// The cases of Tests/BETTests/cases.json and of the random test, which Swift writes: what to evaluate, and the outcome.

import { ArithmeticError, Computation, DefinitionError, Dialect, ExpressionError } from "../../web/bet.js";
import { ParsedExpression, Tokenizer } from "../../web/bet.js";

// The built-in computations, and those of TestComputations.swift.
const computations = new Map([
    ...Computation.builtIn,
    ["answer", new Computation(0, () => 42)],
    ["sum4", new Computation(4, ([a, b, c, d]) => a + b + c + d)],
    ["nan", new Computation(1, () => NaN)],
    ["infinite", new Computation(1, () => Infinity)],
    ["negativeZero", new Computation(1, () => -0)],
    [
        "noInteger",
        new Computation(1, () => {
            throw new ArithmeticError("integerRequired");
        }),
    ],
]);

/** Returns the bits of a number as 16 hexadecimal digits. */
export function bits(number) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, number);
    return view.getBigUint64(0).toString(16).padStart(16, "0");
}

/** Returns the outcome of a case: the bits of its value, or its error; for a text, its tokens and their offsets too. */
export function run(testCase) {
    const outcome = {};
    try {
        const dialect = dialectOf(testCase);
        if (testCase.refused !== undefined) return outcome;
        let tokens = testCase.tokens;
        if (testCase.text !== undefined) {
            const split = new Tokenizer(dialect).tokens(testCase.text);
            tokens = split.map((token) => token.text);
            outcome.tokens = tokens;
            outcome.offsets = split.map((token) => token.offset);
        } else if (testCase.runs !== undefined) {
            tokens = testCase.runs.flatMap(([count, ...run]) => new Array(count).fill(run).flat());
        }
        outcome.bits = bits(new ParsedExpression(tokens, dialect, { maxTokens: testCase.maxTokens }).value());
    } catch (error) {
        if (error instanceof ExpressionError) {
            outcome.error = error.code;
            outcome.at = error.index;
        } else if (error instanceof DefinitionError) {
            outcome.refused = error.code;
        } else {
            throw error;
        }
        outcome.message = error.message;
    }
    return outcome;
}

function dialectOf(testCase) {
    const dialect = namedDialect(testCase.dialect ?? "standard");
    for (const definition of testCase.define ?? []) {
        const computation = computations.get(definition.computes);
        if (definition.remove !== undefined) {
            dialect.remove(definition.remove);
        } else if (definition.function !== undefined) {
            dialect.defineFunction(definition.function, computation);
        } else {
            dialect.defineOperator(definition.operator, definition.position, definition, computation);
        }
    }
    return dialect;
}

function namedDialect(name) {
    if (name === "empty") return new Dialect();
    return name === "standard" ? Dialect.standard : Dialect.upTo(name);
}
