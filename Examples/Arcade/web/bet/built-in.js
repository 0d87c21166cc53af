// The built-in computations.

import { ArithmeticError, Computation } from "./computation.js";

function safeInteger(number) {
    if (!Number.isSafeInteger(number)) throw new ArithmeticError("integerRequired");
    return number;
}

function power([base, exponent]) {
    if (!Number.isInteger(exponent)) throw new ArithmeticError("integerRequired");
    if (exponent < 0 && base === 0) throw new ArithmeticError("divisionByZero");
    let result = 1;
    let remaining = Math.abs(exponent);
    while (remaining > 0) {
        if (remaining % 2 === 1) result *= base;
        remaining = Math.floor(remaining / 2);
        base *= base;
    }
    if (exponent >= 0) return result;
    // The power of a small number underflows to 0 where its reciprocal is too large.
    if (result === 0) throw new ArithmeticError("overflow");
    return 1 / result;
}

function integerSquareRoot([number]) {
    if (safeInteger(number) < 0) throw new ArithmeticError("undefinedValue");
    const root = Math.floor(Math.sqrt(number));
    // The square root of k² - 1 is rounded up to k when k is above 2^26.
    return root * root > number ? root - 1 : root;
}

function shiftLeft([number, count]) {
    safeInteger(number);
    if (!Number.isInteger(count) || count < 0 || count > 1023) throw new ArithmeticError("integerRequired");
    // Doubling is exact; ECMAScript does not specify that 2 ** count is.
    let factor = 1;
    for (let bit = 0; bit < count; bit += 1) factor *= 2;
    return number * factor;
}

function nonZero(divisor) {
    if (divisor === 0) throw new ArithmeticError("divisionByZero");
    return divisor;
}

function clamp([number, low, high]) {
    if (!(low <= high)) throw new ArithmeticError("undefinedValue");
    if (number < low) return low;
    return number > high ? high : number;
}

// The operators & and | of numbers have 32 bits; those of BigInt have as many as needed.
export const builtIn = {
    add: new Computation(2, ([a, b]) => a + b),
    subtract: new Computation(2, ([a, b]) => a - b),
    multiply: new Computation(2, ([a, b]) => a * b),
    divide: new Computation(2, ([a, b]) => a / nonZero(b)),
    remainder: new Computation(2, ([a, b]) => a % nonZero(b)),
    negate: new Computation(1, ([a]) => -a),
    identity: new Computation(1, ([a]) => a),
    increment: new Computation(1, ([a]) => a + 1),
    square: new Computation(1, ([a]) => a * a),
    squareRoot: new Computation(1, ([a]) => Math.sqrt(a)),
    floor: new Computation(1, ([a]) => Math.floor(a)),
    ceiling: new Computation(1, ([a]) => Math.ceil(a)),
    isLess: new Computation(2, ([a, b]) => (a < b ? 1 : 0)),
    clamp: new Computation(3, clamp),
    power: new Computation(2, power),
    integerSquareRoot: new Computation(1, integerSquareRoot),
    shiftLeft: new Computation(2, shiftLeft),
    bitwiseAnd: new Computation(2, ([a, b]) => Number(BigInt(safeInteger(a)) & BigInt(safeInteger(b)))),
    bitwiseOr: new Computation(2, ([a, b]) => Number(BigInt(safeInteger(a)) | BigInt(safeInteger(b)))),
};

Computation.builtIn = new Map(Object.entries(builtIn));
