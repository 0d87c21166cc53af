// The computation of an operator or a function from a fixed number of arguments.

const arithmeticCodes = ["divisionByZero", "overflow", "undefinedValue", "integerRequired"];

export class ArithmeticError extends Error {
    constructor(code) {
        if (!arithmeticCodes.includes(code)) throw new TypeError(`unknown code of an ArithmeticError: ${code}`);
        super(code);
        this.name = "ArithmeticError";
        this.code = code;
    }
}

export class Computation {
    #body;

    constructor(argumentCount, body) {
        if (!Number.isSafeInteger(argumentCount) || argumentCount < 0) {
            throw new TypeError(`the number of arguments is ${argumentCount}, not an integer from 0`);
        }
        if (typeof body !== "function") throw new TypeError("the body of a computation must be a function");
        this.argumentCount = argumentCount;
        this.#body = body;
        Object.freeze(this);
    }

    value(args) {
        if (args.length !== this.argumentCount) {
            throw new TypeError(`${args.length} arguments, expected ${this.argumentCount}`);
        }
        const body = this.#body;
        const value = body(args);
        if (typeof value !== "number" || Number.isNaN(value)) throw new ArithmeticError("undefinedValue");
        if (!Number.isFinite(value)) throw new ArithmeticError("overflow");
        // Turns negative zero into zero.
        return value + 0;
    }
}
