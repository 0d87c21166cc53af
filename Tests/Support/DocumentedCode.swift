import Foundation

/// Code of the documentation, in a form in which it can be compared with code of a test.
public enum DocumentedCode {
    /// Returns the lines of a text without comments, indentation and empty lines.
    public static func lines(_ text: String) -> [String] {
        text.components(separatedBy: "\n")
            .map { line in
                let isComment = line.trimmingCharacters(in: .whitespaces).hasPrefix("//")
                let end = line.range(of: " //")?.lowerBound ?? line.endIndex
                return isComment ? "" : line[..<end].trimmingCharacters(in: .whitespaces)
            }
            .filter { !$0.isEmpty }
    }

    /// Returns the lines of each example in a Markdown text.
    public static func examples(ofMarkdown text: String) -> [String] {
        text.components(separatedBy: "```swift\n").dropFirst().map { rest in
            lines(rest.components(separatedBy: "```\n")[0]).joined(separator: "\n")
        }
    }
}
