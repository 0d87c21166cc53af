// Cases that the table cannot contain: computations of the caller's own, wrong types, and the declarations for TypeScript.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import * as bet from "../../web/bet.js";

const { ArithmeticError, Computation, DefinitionError, Dialect, ParsedExpression, Tokenizer } = bet;

describe("bet.js", () => {
    it("computes with a function of the caller", () => {
        const dialect = Dialect.standard.defineFunction("double", new Computation(1, ([x]) => 2 * x));
        assert.equal(new ParsedExpression(["double", "(", "4", ")"], dialect).value(), 8);
    });

    it("keeps the definitions with which an expression was parsed", () => {
        const dialect = new Dialect();
        const plus = (computes) => ["+", "infix", { precedence: 5 }, Computation.builtIn.get(computes)];
        const expression = new ParsedExpression(["2", "+", "3"], dialect.defineOperator(...plus("add")));
        dialect.defineOperator(...plus("multiply"));
        assert.equal(expression.value(), 5);
        assert.equal(new ParsedExpression(["2", "+", "3"], dialect).value(), 6);
    });

    it("keeps the tokens with which an expression was parsed", () => {
        const tokens = ["1", "/", "0"];
        const expression = new ParsedExpression(tokens);
        tokens[1] = "+";
        assert.throws(() => expression.value(), { code: "divisionByZero", index: 1, token: "/" });
    });

    it("copies a dialect", () => {
        const original = Dialect.upTo("basic");
        const copy = original.copy().remove("+").defineFunction("f", Computation.builtIn.get("floor"));
        copy.defineOperator("-", "infix", { precedence: 5 }, Computation.builtIn.get("add"));
        assert.equal(new ParsedExpression(["3", "-", "2"], original).value(), 1);
        assert.deepEqual([original.isOperator("+"), copy.isOperator("+")], [true, false]);
        assert.deepEqual([original.isFunction("f"), copy.isFunction("f")], [false, true]);
    });

    it("leaves the standard dialect as it is", () => {
        Dialect.standard.remove("+");
        assert.equal(new ParsedExpression(["1", "+", "1"]).value(), 2);
        assert.equal(new ParsedExpression(["1", "+", "1"], Dialect.standard).value(), 2);
    });

    it("a refused definition leaves the dialect as it is", () => {
        const dialect = Dialect.standard;
        const square = Computation.builtIn.get("square");
        assert.throws(() => dialect.defineOperator("+", "postfix", { precedence: 9 }, square), DefinitionError);
        assert.throws(() => dialect.defineFunction("+", square), { code: "nameInUse", definedName: "+" });
        assert.equal(new ParsedExpression(["1", "+", "1"], dialect).value(), 2);
        assert.equal(dialect.isFunction("+"), false);
    });

    it("reports no number as a result of a computation as undefined", () => {
        for (const result of ["1", undefined, null, 1n]) {
            const dialect = new Dialect().defineFunction("f", new Computation(0, () => result));
            const expression = new ParsedExpression(["f", "(", ")"], dialect);
            assert.throws(() => expression.value(), { code: "undefinedValue", index: 0 });
        }
    });

    it("passes other errors of a computation on", () => {
        const failure = new Error("of the caller");
        const body = () => {
            throw failure;
        };
        const dialect = new Dialect().defineFunction("f", new Computation(0, body));
        const expression = new ParsedExpression(["f", "(", ")"], dialect);
        assert.throws(() => expression.value(), (error) => error === failure);
    });

    it("refuses arguments of the wrong type", () => {
        const negate = Computation.builtIn.get("negate");
        assert.throws(() => new ParsedExpression("1 + 1"), TypeError);
        assert.throws(() => new ParsedExpression([1, "+", 1]), TypeError);
        assert.throws(() => new ParsedExpression(new Array(3)), TypeError);
        assert.throws(() => new ParsedExpression(["1"], undefined, { maxTokens: -1 }), TypeError);
        assert.throws(() => new Computation(-1, () => 1), TypeError);
        assert.throws(() => new Computation(1.5, () => 1), TypeError);
        assert.throws(() => new Computation(1), TypeError);
        assert.throws(() => negate.value([1, 2]), TypeError);
        assert.throws(() => new ArithmeticError("tooLong"), TypeError);
        assert.throws(() => Dialect.upTo("all"), TypeError);
        assert.throws(() => new Dialect().defineFunction("f", (x) => x), TypeError);
        assert.throws(() => new Dialect().defineOperator("!", "between", { precedence: 1 }, negate), TypeError);
        assert.throws(() => new Dialect().defineOperator("!", "prefix", { precedence: 0.5 }, negate), TypeError);
        assert.throws(
            () => new Dialect().defineOperator("!", "prefix", { precedence: 1, associativity: "none" }, negate),
            TypeError,
        );
    });

    it("treats lone surrogates as unknown characters", () => {
        assert.throws(() => new Dialect().defineFunction("\uD83C", Computation.builtIn.get("floor")), DefinitionError);
        assert.deepEqual(new Tokenizer().tokens("1\uD83C").map((token) => token.text), ["1", "\uD83C"]);
        assert.throws(() => new ParsedExpression(["\uD83C"]), { code: "unknownToken" });
    });

    it("names the place and the token in a message", () => {
        assert.throws(() => new ParsedExpression(["1", "+", "clamp", "(", "1", ")"]), {
            message: 'token 2 ("clamp"): expected 3 arguments, found 1',
        });
        assert.throws(() => new ParsedExpression(["x".repeat(1000)]), { token: "x".repeat(32) });
        assert.throws(() => new ParsedExpression(["1", "+"]), { index: 2, token: null });
    });

    it("declares in bet.d.ts what it exports", () => {
        const declarations = readFileSync(new URL("../../web/bet.d.ts", import.meta.url), "utf8");
        const classes = [...declarations.matchAll(/^export declare class (\w+)(?: extends \w+)? \{\n(.*?)^\}/gms)];
        assert.deepEqual(classes.map((match) => match[1]).sort(), Object.keys(bet).sort());
        // Members that exist in the code but not for callers.
        const internal = new Set(["constructor", "definition", "length", "name", "prototype", "stackTraceLimit"]);
        for (const [, name, body] of classes) {
            const methods = body.matchAll(/^ {4}(?:static )?(?:get )?(\w+)\(/gm);
            const statics = body.matchAll(/^ {4}static (?:readonly |get )?(\w+)/gm);
            const declared = [...methods, ...statics].map((match) => match[1]);
            const present = [bet[name], bet[name].prototype].flatMap(Object.getOwnPropertyNames);
            assert.deepEqual(publicMembers(present), publicMembers(declared), name);
        }
        function publicMembers(members) {
            return new Set(members.filter((member) => !internal.has(member)).sort());
        }
    });
});
