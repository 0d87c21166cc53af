// Joins the parts of a script, and puts the names of layout.lua in front or in place.

/// The declarations of layout.lua, of which each script gets those that it uses.
struct ScriptLayout: Sendable {
    private struct Declaration {
        var name: String
        var value: String

        /// Whether the value stands in place of the name, which costs the server nothing. The others are used more than
        /// once in most scripts.
        var isInlined: Bool {
            name.allSatisfy { $0.isUppercase || $0 == "_" }
                || ["index", "sessions", "values", "protected", "format"].contains(name)
        }
    }

    private let declarations: [Declaration]

    /// Reads the lines `local NAME = VALUE`.
    init(_ source: String) {
        declarations = source.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("local "), let equals = line.firstRange(of: " = ") else { return nil }
            return Declaration(
                name: String(line[line.index(line.startIndex, offsetBy: 6)..<equals.lowerBound]),
                value: String(line[equals.upperBound...]))
        }
    }

    /// Returns the text of a script, without comments.
    func script(_ parts: [String]) -> String {
        let lines = parts.joined(separator: "\n").split(separator: "\n").map { $0.drop { $0 == " " } }
        let body = lines.filter { !$0.hasPrefix("--") }.joined(separator: "\n")
        let used = Set(Self.words(body))
        var values: [Substring: String] = [:]
        var head = ""
        for declaration in declarations where used.contains(Substring(declaration.name)) {
            if declaration.isInlined {
                values[Substring(declaration.name)] = declaration.value
            } else {
                head += "local \(declaration.name) = \(declaration.value)\n"
            }
        }
        return head + Self.words(body).map { values[$0] ?? String($0) }.joined()
    }

    /// Splits a text into names, string literals, and what is between them.
    private static func words(_ text: String) -> [Substring] {
        func isPartOfName(_ character: Character) -> Bool {
            character.isASCII && (character.isLetter || character.isNumber) || character == "_"
        }
        var words: [Substring] = []
        var rest = text[...]
        while let first = rest.first {
            let word: Substring
            if first == "'" {
                // The scripts have no other quotes, and none that are escaped.
                let end = rest.dropFirst().firstIndex(of: "'").map { rest.index(after: $0) }
                word = rest[..<(end ?? rest.endIndex)]
            } else if isPartOfName(first) {
                word = rest.prefix(while: isPartOfName)
            } else {
                word = rest.prefix { $0 != "'" && !isPartOfName($0) }
            }
            words.append(word)
            rest = rest[word.endIndex...]
        }
        return words
    }
}
