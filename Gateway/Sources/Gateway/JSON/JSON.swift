/// A JSON value whose numbers keep their digits.
///
/// Messages pass through the gateway unchanged: a number with more digits than a `Double` can hold arrives as it was sent.
enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    /// The digits, as they were sent.
    case number(String)
    case string(String)
    case array([JSON])
    case object([Member])

    /// A name and a value of an object.
    struct Member: Sendable, Hashable {
        var name: String
        var value: JSON
    }

    /// The value of an object's member; `nil` if there is none.
    subscript(name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    var string: String? { if case .string(let text) = self { text } else { nil } }
    var array: [JSON]? { if case .array(let values) = self { values } else { nil } }
    var members: [Member]? { if case .object(let members) = self { members } else { nil } }
    /// The value of a number that is an integer, without fraction and exponent.
    var integer: Int? { if case .number(let digits) = self { Int(digits) } else { nil } }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .number("\(value)") }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(arrayLiteral elements: JSON...) { self = .array(elements) }
    init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member(name: $0.0, value: $0.1) })
    }

    init(_ integer: Int) { self = .number("\(integer)") }

    /// Returns an object with further members. Members whose value is `nil` are left out.
    func with(_ members: (String, JSON?)...) -> JSON {
        guard case .object(let own) = self else { return self }
        return .object(own + members.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }
}
