import BET
import Foundation
import Testing

/// A case of `cases.json` or of the random test: what to evaluate, and for the table what must
/// result.
///
/// `Tests/Web/cases.js` reads the same.
struct Case: Codable, Sendable, CustomTestStringConvertible {
    /// A change of the dialect: a definition, or the name to remove.
    struct Change: Codable, Sendable {
        var `operator`: String?
        var position: String?
        var precedence: Int?
        var associativity: String?
        var function: String?
        var computes: String?
        var remove: String?
    }

    /// A number of repetitions, and the tokens that are repeated.
    struct Run: Codable, Sendable {
        var count: Int
        var tokens: [String]

        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            count = try container.decode(Int.self)
            tokens = []
            while !container.isAtEnd { tokens.append(try container.decode(String.self)) }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(count)
            for token in tokens { try container.encode(token) }
        }
    }

    /// The purpose of the case, where it is not obvious.
    var note: String?
    /// `standard` if absent, `empty`, or a tier.
    var dialect: String?
    var define: [Change]?
    var maxTokens: Int?

    /// The expression: as tokens, or as a text that is split into `tokens` at the `offsets`, or as
    /// repeated tokens.
    var tokens: [String]?
    var text: String?
    var offsets: [Int]?
    var runs: [Run]?

    /// The expected value; or the code and the place of the error; or the code of the error of the
    /// last definition.
    var value: Double?
    var error: String?
    var at: Int?
    var refused: String?

    var testDescription: String {
        let tokens = tokens ?? runs?.flatMap { ["\($0.count) ×"] + $0.tokens } ?? []
        let changes = (define ?? []).flatMap { [$0.operator, $0.function, $0.remove].compactMap(\.self) }
        let expression = text ?? (tokens.isEmpty ? changes : tokens).joined(separator: " ")
        return note.map { "\(expression) (\($0))" } ?? expression
    }

    /// The cases of the table.
    static let table: [Case] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../cases.json").standardized
        do {
            return try JSONDecoder().decode([Case].self, from: Data(contentsOf: file))
        } catch {
            preconditionFailure("\(file.path): \(error)")
        }
    }()
}
