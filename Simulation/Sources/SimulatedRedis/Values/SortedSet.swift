// A sorted set: members with scores, in the order of scores and then of the members' bytes.

/// A member with its score.
struct ScoredMember: Hashable, Comparable, Sendable {
    var score: Double
    var member: Bytes

    static func < (one: ScoredMember, other: ScoredMember) -> Bool {
        one.score != other.score ? one.score < other.score : one.member < other.member
    }
}

/// A sorted set. The order is an array of short runs, so that an insertion moves few elements, and a copy of the set that
/// is then changed copies one run.
struct SortedSet: Hashable, Sendable {
    private static let longestRun = 256

    private var scores: [Bytes: Double] = [:]
    private var runs: [[ScoredMember]] = []
    /// The number of bytes in all members.
    private(set) var size = 0

    var count: Int { scores.count }
    var isEmpty: Bool { scores.isEmpty }

    func score(of member: Bytes) -> Double? { scores[member] }

    /// Sets the score of a member, which it may add.
    mutating func set(_ member: Bytes, _ score: Double) {
        if let old = scores[member] {
            // A zero keeps its sign.
            guard old != score else { return }
            removeFromOrder(ScoredMember(score: old, member: member))
        } else {
            size += member.count
        }
        scores[member] = score
        insertIntoOrder(ScoredMember(score: score, member: member))
    }

    /// Removes a member. Returns whether there was one.
    @discardableResult
    mutating func remove(_ member: Bytes) -> Bool {
        guard let score = scores.removeValue(forKey: member) else { return false }
        size -= member.count
        removeFromOrder(ScoredMember(score: score, member: member))
        return true
    }

    // MARK: Order

    /// A position in the order: a run, and an index in it.
    private struct Position {
        var run: Int
        var index: Int
    }

    /// Returns the number of elements for which a condition holds that holds for the first ones only.
    func countWhile(_ isBefore: (ScoredMember) -> Bool) -> Int {
        let position = partition(isBefore)
        var count = position.index
        for run in 0..<position.run { count += runs[run].count }
        return count
    }

    /// Returns the place of a member in the order.
    func rank(of member: Bytes) -> Int? {
        guard let score = scores[member] else { return nil }
        let element = ScoredMember(score: score, member: member)
        return countWhile { $0 < element }
    }

    /// Returns the elements of a range of places.
    func elements(_ range: Range<Int>) -> [ScoredMember] {
        var found: [ScoredMember] = []
        found.reserveCapacity(range.count)
        var first = 0
        for run in runs {
            let from = max(range.lowerBound - first, 0)
            let upTo = min(range.upperBound - first, run.count)
            if from < upTo { found.append(contentsOf: run[from..<upTo]) }
            first += run.count
            if first >= range.upperBound { break }
        }
        return found
    }

    /// All elements in their order.
    var elements: [ScoredMember] { Array(runs.joined()) }

    private func partition(_ isBefore: (ScoredMember) -> Bool) -> Position {
        // The run that contains the place: the first one whose last element is not before it.
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(runs[middle][runs[middle].count - 1]) { low = middle + 1 } else { high = middle }
        }
        guard low < runs.count else { return Position(run: low, index: 0) }
        return Position(run: low, index: Self.partition(runs[low], isBefore))
    }

    private static func partition(_ run: [ScoredMember], _ isBefore: (ScoredMember) -> Bool) -> Int {
        var low = 0
        var high = run.count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(run[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func insertIntoOrder(_ element: ScoredMember) {
        guard !runs.isEmpty else {
            runs = [[element]]
            return
        }
        var position = partition { $0 < element }
        if position.run == runs.count {
            position = Position(run: runs.count - 1, index: runs[runs.count - 1].count)
        }
        runs[position.run].insert(element, at: position.index)
        let count = runs[position.run].count
        if count > Self.longestRun {
            let half = Array(runs[position.run][(count / 2)...])
            runs[position.run].removeSubrange((count / 2)...)
            runs.insert(half, at: position.run + 1)
        }
    }

    private mutating func removeFromOrder(_ element: ScoredMember) {
        let position = partition { $0 < element }
        runs[position.run].remove(at: position.index)
        if runs[position.run].isEmpty { runs.remove(at: position.run) }
    }

    static func == (one: SortedSet, other: SortedSet) -> Bool { one.scores == other.scores }
    func hash(into hasher: inout Hasher) { hasher.combine(scores) }
}
