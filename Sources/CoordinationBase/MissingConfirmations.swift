// Which of its confirmed requests a process misses on the server of a new connection.

/// A confirmed request, for whose records a script can look.
package protocol ConfirmedRequest: Sendable {
    /// The number of its records; 0 if no record shows the request.
    var recordCount: Int { get }
    /// Whether it was carried out when it was confirmed, and not before.
    var isInOrder: Bool { get }
}

/// The confirmed requests that a server lacks.
package struct MissingConfirmations: Sendable {
    /// The number of records for which one script looks.
    private static let maxRecords = 256

    /// The server has all confirmations before this position.
    package private(set) var start: Int
    /// The positions of those that it lacks, in their order.
    package var positions: [Int] { missing.sorted() }

    private var missing: Set<Int> = []

    /// Looks for confirmations on a server, from the last one on.
    ///
    /// A server has a beginning of what was carried out, so if it has enough of the last ones, it has the earlier ones too.
    ///
    /// - Parameters:
    ///   - confirmations: the oldest first.
    ///   - needed: see ``ConfirmationMemory/compare(_:)``.
    ///   - look: receives confirmations, the oldest first, and returns for each whether the server lacks it; `nil` if it does
    ///     not answer.
    /// - Returns: `nil` if it does not answer.
    package init?<C: ConfirmedRequest>(
        among confirmations: [C], needed: Int, _ look: ([C]) async -> [Bool]?
    ) async {
        start = confirmations.count
        var left = needed
        while start > 0, left > 0 {
            var positions: [Int] = []
            var records = 0
            while start > 0 {
                let count = confirmations[start - 1].recordCount
                if records > 0, records + count > Self.maxRecords { break }
                start -= 1
                records += count
                if count > 0 { positions.append(start) }
            }
            if positions.isEmpty { continue }
            guard let answers = await look(positions.reversed().map { confirmations[$0] }),
                answers.count == positions.count
            else { return nil }
            for (position, isMissing) in zip(positions, answers.reversed()) {
                if isMissing {
                    missing.insert(position)
                    left = needed
                } else if confirmations[position].isInOrder {
                    left -= 1
                }
            }
        }
    }

    package func contains(_ position: Int) -> Bool { missing.contains(position) }
}
