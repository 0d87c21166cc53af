/// The versions of the layouts in which the engine and the mailboxes store their records, and how a
/// namespace names them.
///
/// The field `partitions` has the number of partitions and the version: `1 layout 3`. A program
/// that knows only the first layout expects the number alone, and refuses this.
package enum StoredLayout {
    package static let engineVersion = 3
    package static let mailboxVersion = 2

    /// Returns the field's value for a number of partitions of the engine.
    package static func text(partitions: Int) -> String { "\(partitions) layout \(engineVersion)" }

    /// Returns the number of partitions and the version that a field's value names. The first layout
    /// has no version.
    package static func parse(_ text: String) -> (partitions: String, version: String) {
        let words = text.split(separator: " ").map(String.init)
        return (words.first ?? "", words.count == 3 ? words[2] : "1")
    }
}
