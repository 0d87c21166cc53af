// The grammar of numbers: digits, an optional fraction, an optional exponent, and no sign.

import { isDigit } from "./names.js";

// ECMAScript specifies the value of a literal exactly only up to 20 significant digits.
export const maxSignificantDigits = 20;
export const maxExponentDigits = 3;

// Returns the index after the longest literal that begins at start, or start if none does.
export function endOfNumber(scalars, start) {
    let end = endOfDigits(scalars, start);
    if (end === start) return start;
    if (scalars[end] === ".") {
        const fraction = endOfDigits(scalars, end + 1);
        if (fraction > end + 1) end = fraction;
    }
    if (scalars[end] === "e" || scalars[end] === "E") {
        let digits = end + 1;
        if (scalars[digits] === "+" || scalars[digits] === "-") digits += 1;
        const exponent = endOfDigits(scalars, digits);
        if (exponent > digits) end = exponent;
    }
    return end;
}

export function endOfDigits(scalars, start) {
    let end = start;
    while (end < scalars.length && isDigit.test(scalars[end])) end += 1;
    return end;
}

// Returns the value of a token that is one literal within the bounds, Infinity if it is too large, otherwise undefined.
export function numberValue(token) {
    if (token === "" || endOfNumber(token, 0) !== token.length) return undefined;
    const [digits, exponent = ""] = token.split(/[eE]/);
    const isNotZero = (digit) => digit !== "0";
    const significant = [...digits.replace(".", "")];
    const first = significant.findIndex(isNotZero);
    if (first >= 0 && significant.findLastIndex(isNotZero) - first >= maxSignificantDigits) return undefined;
    if (exponent.replace(/[+-]/, "").length > maxExponentDigits) return undefined;
    return Number(token);
}
