/// The reason why a dialect refuses a definition. The dialect is unchanged.
public struct DefinitionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of errors.
    public enum Code: String, Sendable, CaseIterable {
        /// The name is neither a word of ASCII letters, digits and underscores that begins with no
        /// digit, nor symbols followed by digits, or it has more than 16 Unicode scalars.
        case invalidName
        /// A function has the name of an operator, or an operator that of a function.
        case nameInUse
        /// The name is that of an infix and of a postfix operator: after an operand, both could
        /// follow.
        case ambiguousPosition
        /// The computation of an operator has another number of arguments than its position has
        /// operands.
        case wrongArgumentCount
    }

    /// The kind of error.
    public let code: Code

    /// The name that was to be defined.
    public let definedName: String

    /// The error in words, for a developer.
    public var description: String { "cannot define \"\(definedName)\": \(reason)" }

    private var reason: String {
        switch code {
        case .invalidName: "a name is a word, or symbols followed by digits, of at most \(Name.maxLength) characters"
        case .nameInUse: "no name is both an operator and a function; remove the other definition first"
        case .ambiguousPosition: "no name is both an infix and a postfix operator; remove the other definition first"
        case .wrongArgumentCount: "an infix operator computes with two arguments, every other operator with one"
        }
    }
}
