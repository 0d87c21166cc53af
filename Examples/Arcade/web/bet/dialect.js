// The operators and functions that an expression may use.

import { builtIn } from "./built-in.js";
import { Computation } from "./computation.js";
import { isValidName, maxNameLength } from "./names.js";

const definitionMessages = {
    invalidName: `a name is a word, or symbols followed by digits, of at most ${maxNameLength} characters`,
    nameInUse: "no name is both an operator and a function; remove the other definition first",
    ambiguousPosition: "no name is both an infix and a postfix operator; remove the other definition first",
    wrongArgumentCount: "an infix operator computes with two arguments, every other operator with one",
};

export class DefinitionError extends Error {
    constructor(code, definedName) {
        super(`cannot define "${definedName}": ${definitionMessages[code]}`);
        this.name = "DefinitionError";
        this.code = code;
        this.definedName = definedName;
    }
}

const tiers = ["basic", "powers", "steps", "bits"];

export class Dialect {
    // From names to { prefix, afterOperand, function }. A Map, because an object also has the names that it inherits.
    #definitions = new Map();

    defineOperator(name, position, { precedence, associativity = "left" }, computation) {
        if (!["prefix", "infix", "postfix"].includes(position)) throw new TypeError(`unknown position: ${position}`);
        if (!["left", "right"].includes(associativity)) throw new TypeError(`unknown associativity: ${associativity}`);
        if (!Number.isSafeInteger(precedence)) throw new TypeError(`the precedence is ${precedence}, not an integer`);
        const definition = this.#definitionToChange(name, computation);
        if (definition.function) throw new DefinitionError("nameInUse", name);
        if (computation.argumentCount !== (position === "infix" ? 2 : 1)) {
            throw new DefinitionError("wrongArgumentCount", name);
        }
        const symbol = { position, precedence, associativity, computation };
        if (position === "prefix") {
            definition.prefix = symbol;
        } else {
            if ((definition.afterOperand?.position ?? position) !== position) {
                throw new DefinitionError("ambiguousPosition", name);
            }
            definition.afterOperand = symbol;
        }
        this.#definitions.set(name, definition);
        return this;
    }

    defineFunction(name, computation) {
        const definition = this.#definitionToChange(name, computation);
        if (definition.prefix || definition.afterOperand) throw new DefinitionError("nameInUse", name);
        this.#definitions.set(name, { function: computation });
        return this;
    }

    remove(name) {
        this.#definitions.delete(name);
        return this;
    }

    isOperator(name) {
        const definition = this.#definitions.get(name);
        return definition !== undefined && definition.function === undefined;
    }

    isFunction(name) {
        return this.#definitions.get(name)?.function !== undefined;
    }

    // Returns what a name means, for the parser and the tokenizer.
    definition(name) {
        return this.#definitions.get(name);
    }

    copy() {
        const copy = new Dialect();
        copy.#definitions = new Map(this.#definitions);
        return copy;
    }

    static get standard() {
        return Dialect.upTo("bits")
            .defineOperator("^2", "postfix", { precedence: 9 }, builtIn.square)
            .defineFunction("isqrt", builtIn.integerSquareRoot);
    }

    static upTo(tier) {
        const last = tiers.indexOf(tier);
        if (last < 0) throw new TypeError(`unknown tier: ${tier}`);
        const dialect = new Dialect();
        dialect
            .defineOperator("+", "infix", { precedence: 5 }, builtIn.add)
            .defineOperator("-", "infix", { precedence: 5 }, builtIn.subtract)
            .defineOperator("*", "infix", { precedence: 6 }, builtIn.multiply)
            .defineOperator("/", "infix", { precedence: 6 }, builtIn.divide)
            .defineOperator("-", "prefix", { precedence: 7 }, builtIn.negate);
        if (last >= 1) {
            dialect
                .defineOperator("^", "infix", { precedence: 8, associativity: "right" }, builtIn.power)
                .defineOperator("%", "infix", { precedence: 6 }, builtIn.remainder)
                .defineOperator("√", "prefix", { precedence: 7 }, builtIn.squareRoot);
        }
        if (last >= 2) {
            dialect
                .defineOperator("++", "prefix", { precedence: 7 }, builtIn.increment)
                .defineOperator("++", "postfix", { precedence: 9 }, builtIn.increment)
                .defineOperator("<", "infix", { precedence: 3 }, builtIn.isLess)
                .defineOperator("‹", "infix", { precedence: 4 }, builtIn.shiftLeft);
        }
        if (last >= 3) {
            dialect
                .defineOperator("AND", "infix", { precedence: 2 }, builtIn.bitwiseAnd)
                .defineOperator("OR", "infix", { precedence: 1 }, builtIn.bitwiseOr)
                .defineFunction("floor", builtIn.floor)
                .defineFunction("ceil", builtIn.ceiling)
                .defineFunction("clamp", builtIn.clamp);
        }
        return dialect;
    }

    // Returns a copy, because copies of the dialect share their definitions.
    #definitionToChange(name, computation) {
        if (typeof name !== "string" || !isValidName(name)) throw new DefinitionError("invalidName", String(name));
        if (!(computation instanceof Computation)) throw new TypeError("not a Computation");
        return { ...this.#definitions.get(name) };
    }
}
