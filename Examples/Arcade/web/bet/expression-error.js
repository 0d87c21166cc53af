// The reason why an expression is invalid or has no value, and the token that is the place.

import { maxExponentDigits, maxSignificantDigits } from "./numbers.js";

const messages = {
    tooLong: "the expression has too many tokens",
    unknownToken: "neither a number nor an operator or a function of this dialect",
    invalidNumber:
        `not a number; a number has at most ${maxSignificantDigits} significant digits, ` +
        `and its exponent at most ${maxExponentDigits}`,
    operandExpected: "expected a number, a function, a prefix operator or an opening parenthesis",
    operatorExpected: "expected an infix or postfix operator, a closing parenthesis, a comma or the end",
    unclosedParenthesis: "this parenthesis is never closed",
    unopenedParenthesis: "this parenthesis was never opened",
    misplacedComma: "a comma can only stand between the arguments of a function",
    argumentsExpected: "expected an opening parenthesis after the name of the function",
    wrongArgumentCount: "wrong number of arguments",
    divisionByZero: "division by zero",
    overflow: "the number is too large",
    undefinedValue: "the result is not defined",
    integerRequired: "requires an integer operand, or one in a smaller range",
};

export class ExpressionError extends Error {
    constructor(code, index, tokens, reason = messages[code]) {
        const token = index < tokens.length ? firstScalars(tokens[index], 32) : null;
        super(`token ${index} (${token === null ? "the end" : `"${token}"`}): ${reason}`);
        this.name = "ExpressionError";
        this.code = code;
        this.index = index;
        this.token = token;
        this.reason = reason;
    }
}

function firstScalars(text, count) {
    // Twice as many code units contain at least as many scalars; the rest of a long text is not split.
    return [...text.slice(0, 2 * count)].slice(0, count).join("");
}
