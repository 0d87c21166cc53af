/// A statement about a log, and whether it holds.
public struct Invariant: Sendable {
    /// The statement in words. It is the same for every log.
    public let statement: String
    /// The plural noun for what is checked, for instance `items`.
    public let unit: String
    /// The number of checks. An invariant that was never checked does not hold.
    public var checked = 0
    /// More figures for the report.
    public var remark = ""
    /// A line of text for each violation.
    public private(set) var violations: [String] = []

    /// Creates an invariant without checks.
    public init(_ statement: String, unit: String) { (self.statement, self.unit) = (statement, unit) }

    /// Whether it was checked and never violated.
    public var holds: Bool { violations.isEmpty && checked > 0 }

    /// Records a violation.
    ///
    /// - Parameters:
    ///   - line: the index of the entry in the log.
    ///   - entry: the entry that violates the invariant.
    ///   - why: the reason.
    public mutating func violate(_ line: Int, _ entry: Entry, _ why: String) {
        violations.append("line \(line + 1), \(entry.text): \(why)")
    }

    /// One line: the statement, whether it holds, and the figures.
    public var sentence: String {
        let numbers = "\(checked) \(unit)" + (remark.isEmpty ? "" : ", \(remark)")
        return "\(statement): \(holds ? "yes" : "NO") (\(numbers))"
    }
}
