import ArgumentParser

extension CommandConfiguration {
    /// Adds examples to the help of a command, which a test parses.
    func examples(_ lines: String...) -> Self {
        var copy = self
        if !copy.discussion.isEmpty { copy.discussion += "\n\n" }
        copy.discussion += (["EXAMPLE\(lines.count > 1 ? "S" : ""):"] + lines.map { "  " + $0 }).joined(separator: "\n")
        return copy
    }
}
