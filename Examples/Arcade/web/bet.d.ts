// The declarations of bet.js. The Swift library BET has the same, and documents limits and reasons in more detail.

/** The reason why a computation has no value. */
export type ArithmeticCode =
    /** A division by zero, a remainder of one, or a negative power of zero. */
    | "divisionByZero"
    /** A result whose magnitude is too large for a number. */
    | "overflow"
    /** Operands for which the result is not defined, such as the square root of a negative number. */
    | "undefinedValue"
    /** An operand that is not an integer, or is outside of the range of integers that the computation supports. */
    | "integerRequired";

/** An error that the body of a computation throws if it has no value. */
export declare class ArithmeticError extends Error {
    constructor(code: ArithmeticCode);
    readonly code: ArithmeticCode;
}

/** What an operator or a function computes from a fixed number of arguments. */
export declare class Computation {
    /**
     * @param argumentCount The number of arguments, an integer that is not negative.
     * @param body Returns the value for an array of `argumentCount` numbers. May throw an `ArithmeticError`; other
     *   errors reach the caller of `ParsedExpression.value` unchanged.
     */
    constructor(argumentCount: number, body: (args: number[]) => number);
    readonly argumentCount: number;
    /**
     * Returns the value for the arguments: finite, and never negative zero.
     *
     * @throws `ArithmeticError` of the body; `undefinedValue` if it returns NaN or no number, `overflow` if it returns
     *   an infinity.
     */
    value(args: number[]): number;
    /**
     * The built-in computations: add, subtract, multiply, divide, remainder, power, negate, identity, increment,
     * square, squareRoot, integerSquareRoot, floor, ceiling, clamp, isLess, shiftLeft, bitwiseAnd, bitwiseOr.
     */
    static readonly builtIn: ReadonlyMap<string, Computation>;
}

/** Where an operator stands: before its operand, between its two operands, or after its operand. */
export type Position = "prefix" | "infix" | "postfix";

/** Which of two operators of the same precedence binds their common operand; the operator to the right decides. */
export type Associativity = "left" | "right";

/** How an operator binds. The operator with the greater precedence binds an operand. */
export interface Binding {
    /** An integer. */
    precedence: number;
    /** `left` by default. */
    associativity?: Associativity;
}

/**
 * The tiers of operators and functions, each with those of the tiers before it: basic (`+ - * /`), powers (`^ % √`),
 * steps (`++ < ‹`), bits (`AND`, `OR`, `floor`, `ceil`, `clamp`).
 */
export type Tier = "basic" | "powers" | "steps" | "bits";

/** The operators and functions that an expression may use. Unlike in Swift, it is an object with an identity. */
export declare class Dialect {
    /** Creates a dialect without any operator or function. */
    constructor();
    /**
     * Defines an operator, or redefines the one that has the same name and position. Returns the dialect.
     *
     * @param name An ASCII word, or symbols followed by digits; at most 16 Unicode scalars.
     * @throws `DefinitionError`; the dialect is unchanged.
     */
    defineOperator(name: string, position: Position, binding: Binding, computation: Computation): this;
    /**
     * Defines a function, or redefines the one that has the same name. Returns the dialect.
     *
     * @throws `DefinitionError`; the dialect is unchanged.
     */
    defineFunction(name: string, computation: Computation): this;
    /** Removes the function or the operators with a name, in all positions. Returns the dialect. */
    remove(name: string): this;
    /** Returns whether the name is that of an operator. */
    isOperator(name: string): boolean;
    /** Returns whether the name is that of a function. */
    isFunction(name: string): boolean;
    /** Returns a dialect with the same definitions. */
    copy(): Dialect;
    /** A new dialect with all tiers, `^2` (a postfix, the square) and `isqrt(x)` (the integer square root). */
    static get standard(): Dialect;
    /** Returns a new dialect with the operators and functions of a tier and of the tiers before it. */
    static upTo(tier: Tier): Dialect;
}

/** The reason why a dialect refuses a definition. */
export type DefinitionCode = "invalidName" | "nameInUse" | "ambiguousPosition" | "wrongArgumentCount";

/** A refused definition. */
export declare class DefinitionError extends Error {
    private constructor();
    readonly code: DefinitionCode;
    /** The name that was to be defined. */
    readonly definedName: string;
}

/** The reason why an expression is invalid or has no value. */
export type ExpressionCode =
    | ArithmeticCode
    | "tooLong"
    | "unknownToken"
    | "invalidNumber"
    | "operandExpected"
    | "operatorExpected"
    | "unclosedParenthesis"
    | "unopenedParenthesis"
    | "misplacedComma"
    | "argumentsExpected"
    | "wrongArgumentCount";

/** The reason why an expression is invalid or has no value, and the token that is the place. */
export declare class ExpressionError extends Error {
    private constructor();
    readonly code: ExpressionCode;
    /** The index of the token that is the place; the number of tokens if the place is the end. */
    readonly index: number;
    /** The token at the place, shortened to 32 Unicode scalars; `null` at the end. */
    readonly token: string | null;
    /** The error in words, without the place; `message` has both. */
    readonly reason: string;
}

/** A valid expression, ready to be evaluated. Later changes of its dialect have no effect on it. */
export declare class ParsedExpression {
    /** The maximum number of tokens unless the caller states another: 10,000. */
    static readonly maxTokens: number;
    /**
     * Parses an expression.
     *
     * @param dialect `Dialect.standard` by default.
     * @throws `ExpressionError` for the first error.
     */
    constructor(tokens: readonly string[], dialect?: Dialect, options?: { maxTokens?: number });
    /**
     * Evaluates the expression.
     *
     * @throws `ExpressionError` at the first operator or function without a value.
     */
    value(): number;
}

/** A token and the number of Unicode scalars (code points, not UTF-16 code units) before it in the text. */
export interface Token {
    readonly text: string;
    readonly offset: number;
}

/** Splits a text into the tokens of a dialect. What the dialect does not know becomes a token too. */
export declare class Tokenizer {
    /** @param dialect `Dialect.standard` by default. */
    constructor(dialect?: Dialect);
    /** Returns the tokens of a text. */
    tokens(text: string): Token[];
}
