/// The name of an operator or a function, compared by its Unicode scalars.
///
/// A `String` also equals its other canonical forms, which JavaScript's strings do not.
struct Name: Hashable, Sendable {
    /// The maximum number of Unicode scalars in a name.
    static let maxLength = 16

    let text: String

    init(_ text: String) { self.text = text }

    static func == (first: Name, second: Name) -> Bool { first.text.utf8.elementsEqual(second.text.utf8) }

    func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }

    /// Whether an operator or a function may have this name: a word, or symbols and then digits.
    var isValid: Bool {
        let scalars = text.unicodeScalars
        guard let first = scalars.first, scalars.prefix(Self.maxLength + 1).count <= Self.maxLength else {
            return false
        }
        if first.startsWord { return scalars.allSatisfy(\.continuesWord) }
        return first.isSymbol && scalars.drop(while: \.isSymbol).allSatisfy(\.isDigit)
    }
}

// Only ASCII is classified, so that no version of Unicode makes a difference between two languages.
extension Unicode.Scalar {
    /// Whether this is a digit from 0 to 9.
    var isDigit: Bool { ("0"..."9").contains(self) }

    /// Whether a word can begin with this scalar: an ASCII letter or an underscore.
    var startsWord: Bool { ("a"..."z").contains(self) || ("A"..."Z").contains(self) || self == "_" }

    /// Whether a word can continue with this scalar.
    var continuesWord: Bool { startsWord || isDigit }

    /// Whether a name can consist of this scalar and others like it: no letter, digit, space,
    /// control character or punctuation of the grammar.
    var isSymbol: Bool {
        value > 0x20 && !(0x7F...0xA0).contains(value) && !continuesWord && !"(),.".unicodeScalars.contains(self)
    }

    /// Whether this separates tokens in a text.
    var isSpace: Bool { self == " " || self == "\t" || self == "\n" || self == "\r" }
}
