import Foundation
import TestSupport

/// Returns the lines of a document that begin with `redisdc`, without their comments.
func documentedCommands(of document: String) throws -> [String] {
    let text = try String(contentsOf: packageRoot.appendingPathComponent(document), encoding: .utf8)
    return text.split(separator: "\n").compactMap { line in
        let trimmed = line.drop { $0 == " " }
        let isCode = line.count - trimmed.count == 4 || !line.contains("`") && line.count == trimmed.count
        guard isCode, trimmed.hasPrefix("redisdc ") else { return nil }
        let command = trimmed.firstRange(of: "  #").map { trimmed[..<$0.lowerBound] } ?? trimmed
        return command.trimmingCharacters(in: .whitespaces)
    }
}
