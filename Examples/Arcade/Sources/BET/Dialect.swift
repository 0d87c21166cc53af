/// The operators and functions that an expression may use.
///
/// ```swift
/// var dialect = Dialect.standard
/// try dialect.defineFunction("double", Computation(1) { 2 * $0[0] })
/// try dialect.defineOperator("!=", .infix, precedence: 3, Computation(2) { $0[0] != $0[1] ? 1 : 0 })
/// try ParsedExpression(["double", "(", "4", ")", "!=", "8"], in: dialect).value()  // 0
/// ```
///
/// A name may be redefined. No name is both an operator and a function. The same name may be a
/// prefix operator and also an infix or a postfix one, such as `-` and `++`; not both of these,
/// because after an operand either could follow. An expression keeps the definitions of the dialect
/// with which it was parsed.
public struct Dialect: Sendable {
    /// The possible meanings of a name. Infix and postfix share a member because they exclude each other.
    struct Definition: Sendable {
        var prefix: Operator?
        var afterOperand: Operator?
        var function: Computation?
    }

    private var definitions: [Name: Definition] = [:]

    /// Creates a dialect without any operator or function: its expressions are numbers and
    /// parentheses.
    public init() {}

    /// Defines an operator, or redefines the one that has the same name and position.
    ///
    /// - Parameters:
    ///   - name: an ASCII word, or symbols followed by digits; at most 16 Unicode scalars. A symbol
    ///     is every character except ASCII letters, digits, underscores, spaces, control
    ///     characters, parentheses, commas and periods.
    ///   - position: where the operator stands.
    ///   - precedence: the operator with the greater precedence binds an operand.
    ///   - associativity: which of two operators of the same precedence binds an operand.
    ///   - computation: what the operator computes, with one argument for each operand.
    /// - Throws: `DefinitionError`: `invalidName`, `nameInUse` by a function, `ambiguousPosition`,
    ///   or `wrongArgumentCount`.
    public mutating func defineOperator(
        _ name: String, _ position: Operator.Position, precedence: Int,
        associativity: Operator.Associativity = .left, _ computation: Computation
    ) throws(DefinitionError) {
        var definition = try definition(toChange: name)
        guard definition.function == nil else { throw DefinitionError(code: .nameInUse, definedName: name) }
        guard computation.argumentCount == position.operandCount else {
            throw DefinitionError(code: .wrongArgumentCount, definedName: name)
        }
        let symbol = Operator(
            position: position, precedence: precedence, associativity: associativity, computation: computation)
        if position == .prefix {
            definition.prefix = symbol
        } else {
            guard definition.afterOperand.map({ $0.position == position }) ?? true else {
                throw DefinitionError(code: .ambiguousPosition, definedName: name)
            }
            definition.afterOperand = symbol
        }
        definitions[Name(name)] = definition
    }

    /// Defines a function, or redefines the one that has the same name.
    ///
    /// - Parameters:
    ///   - name: as for an operator.
    ///   - computation: what the function computes from its arguments.
    /// - Throws: `DefinitionError`: `invalidName`, or `nameInUse` by an operator.
    public mutating func defineFunction(_ name: String, _ computation: Computation) throws(DefinitionError) {
        var definition = try definition(toChange: name)
        guard definition.prefix == nil, definition.afterOperand == nil else {
            throw DefinitionError(code: .nameInUse, definedName: name)
        }
        definition.function = computation
        definitions[Name(name)] = definition
    }

    /// Removes the function or the operators with a name, in all positions; does nothing if there
    /// are none.
    public mutating func remove(_ name: String) { definitions[Name(name)] = nil }

    /// Returns whether the name is that of an operator.
    public func isOperator(_ name: String) -> Bool {
        guard let definition = self[name] else { return false }
        return definition.function == nil
    }

    /// Returns whether the name is that of a function.
    public func isFunction(_ name: String) -> Bool { self[name]?.function != nil }

    /// The meaning of a name, or `nil` for a name that is not defined.
    subscript(name: String) -> Definition? { definitions[Name(name)] }

    private func definition(toChange name: String) throws(DefinitionError) -> Definition {
        guard Name(name).isValid else { throw DefinitionError(code: .invalidName, definedName: name) }
        return self[name] ?? Definition()
    }
}
