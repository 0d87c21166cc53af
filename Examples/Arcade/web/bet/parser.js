import { ExpressionError } from "./expression-error.js";
import { isDigit } from "./names.js";
import { numberValue } from "./numbers.js";

// Translates tokens into a program for a stack of values, with Dijkstra's shunting-yard algorithm. At each token either
// an operand must begin or an operator must follow an operand. An instruction is { number } or { computation, index }.
export class Parser {
    #tokens;
    #dialect;
    #program = [];
    // The operators to the left whose right operand is not complete: { symbol, index }.
    #pending = [];
    // The open parentheses: { index, function, commas, pendingOutside }.
    #groups = [];
    #expectsOperand = true;

    constructor(tokens, dialect) {
        this.#tokens = tokens;
        this.#dialect = dialect;
    }

    parse() {
        const tokens = this.#tokens;
        let index = 0;
        while (index < tokens.length) {
            const token = tokens[index];
            const definition = this.#dialect.definition(token);
            if (token === "(") this.#open(index);
            else if (token === ")") this.#close(index);
            else if (token === ",") this.#nextArgument(index);
            else if (definition?.function) index = this.#call(definition.function, index);
            else if (definition) this.#parseOperator(definition, index);
            else this.#parseNumber(index);
            index += 1;
        }
        const group = this.#groups.at(-1);
        if (group) throw this.#error("unclosedParenthesis", group.index);
        if (this.#expectsOperand) throw this.#error("operandExpected", index);
        this.#applyPending();
        return this.#program;
    }

    #parseNumber(index) {
        const token = this.#tokens[index];
        const number = numberValue(token);
        if (number === undefined) throw this.#error(isDigit.test(token[0]) ? "invalidNumber" : "unknownToken", index);
        if (!this.#expectsOperand) throw this.#error("operatorExpected", index);
        if (!Number.isFinite(number)) throw this.#error("overflow", index);
        this.#program.push({ number });
        this.#expectsOperand = false;
    }

    #parseOperator(definition, index) {
        if (this.#expectsOperand) {
            if (!definition.prefix) throw this.#error("operandExpected", index);
            this.#pending.push({ symbol: definition.prefix, index });
            return;
        }
        const symbol = definition.afterOperand;
        if (!symbol) throw this.#error("operatorExpected", index);
        // The operand to the left belongs to the operators that bind it more strongly than this one.
        this.#applyPending(
            (left) =>
                left.precedence > symbol.precedence ||
                (left.precedence === symbol.precedence && symbol.associativity === "left"),
        );
        if (symbol.position === "postfix") {
            this.#program.push({ computation: symbol.computation, index });
        } else {
            this.#pending.push({ symbol, index });
            this.#expectsOperand = true;
        }
    }

    // Begins the arguments of a function. Returns the index of the parenthesis after its name.
    #call(computation, index) {
        if (!this.#expectsOperand) throw this.#error("operatorExpected", index);
        if (this.#tokens[index + 1] !== "(") throw this.#error("argumentsExpected", index);
        this.#open(index + 1, computation);
        return index + 1;
    }

    #open(index, computation) {
        if (!this.#expectsOperand) throw this.#error("operatorExpected", index);
        this.#groups.push({ index, function: computation, commas: 0, pendingOutside: this.#pending.length });
    }

    #nextArgument(index) {
        const group = this.#groups.at(-1);
        if (!group?.function) throw this.#error("misplacedComma", index);
        if (this.#expectsOperand) throw this.#error("operandExpected", index);
        this.#applyPending();
        group.commas += 1;
        this.#expectsOperand = true;
    }

    #close(index) {
        const group = this.#groups.at(-1);
        if (!group) throw this.#error("unopenedParenthesis", index);
        const hasNoArguments = group.function !== undefined && index === group.index + 1;
        if (this.#expectsOperand && !hasNoArguments) throw this.#error("operandExpected", index);
        this.#applyPending();
        this.#groups.pop();
        this.#expectsOperand = false;
        if (!group.function) return;
        const name = group.index - 1;
        const count = hasNoArguments ? 0 : group.commas + 1;
        const expected = group.function.argumentCount;
        if (count !== expected) {
            const reason = `expected ${expected} arguments, found ${count}`;
            throw new ExpressionError("wrongArgumentCount", name, this.#tokens, reason);
        }
        this.#program.push({ computation: group.function, index: name });
    }

    // Appends the pending operators within the innermost parenthesis to the program, as long as a condition holds.
    #applyPending(condition = () => true) {
        const outside = this.#groups.at(-1)?.pendingOutside ?? 0;
        while (this.#pending.length > outside && condition(this.#pending.at(-1).symbol)) {
            const { symbol, index } = this.#pending.pop();
            this.#program.push({ computation: symbol.computation, index });
        }
    }

    #error(code, index) {
        return new ExpressionError(code, index, this.#tokens);
    }
}
