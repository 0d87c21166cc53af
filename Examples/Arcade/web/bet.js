// The evaluator of expressions, the same as the Swift library BET: same values bit for bit, same errors, same places.
// bet.d.ts documents the declarations, and the Swift sources document the reasons.

export { ArithmeticError, Computation } from "./bet/computation.js";
export { DefinitionError, Dialect } from "./bet/dialect.js";
export { ExpressionError } from "./bet/expression-error.js";
export { ParsedExpression } from "./bet/parsed-expression.js";
export { Tokenizer } from "./bet/tokenizer.js";
