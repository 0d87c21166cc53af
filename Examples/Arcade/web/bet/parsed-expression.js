// A valid expression, ready to be evaluated.

import { ArithmeticError } from "./computation.js";
import { Dialect } from "./dialect.js";
import { ExpressionError } from "./expression-error.js";
import { Parser } from "./parser.js";

// Dialect.standard creates a new dialect each time.
const standard = Dialect.standard;

export class ParsedExpression {
    static maxTokens = 10_000;

    #tokens;
    #program;

    constructor(tokens, dialect = standard, { maxTokens = ParsedExpression.maxTokens } = {}) {
        if (!Array.isArray(tokens)) throw new TypeError("the tokens must be an array of strings");
        if (!Number.isSafeInteger(maxTokens) || maxTokens < 0) {
            throw new TypeError(`maxTokens is ${maxTokens}, not an integer from 0`);
        }
        if (tokens.length > maxTokens) throw new ExpressionError("tooLong", maxTokens, tokens);
        this.#tokens = [...tokens];
        if (!this.#tokens.every((token) => typeof token === "string")) {
            throw new TypeError("the tokens must be an array of strings");
        }
        this.#program = new Parser(this.#tokens, dialect).parse();
    }

    value() {
        const values = [];
        for (const { number, computation, index } of this.#program) {
            if (computation === undefined) {
                values.push(number);
                continue;
            }
            const args = values.splice(values.length - computation.argumentCount);
            try {
                values.push(computation.value(args));
            } catch (error) {
                if (!(error instanceof ArithmeticError)) throw error;
                throw new ExpressionError(error.code, index, this.#tokens);
            }
        }
        return values[0];
    }
}
