// A set with a bound, which forgets its oldest numbers.
import DequeModule

/// The most recent numbers, at most ``limit``.
struct RecentNumbers: Sendable {
    static let limit = 4096

    private var numbers: Set<UInt64> = []
    private var oldestFirst: Deque<UInt64> = []

    mutating func insert(_ number: UInt64) {
        guard numbers.insert(number).inserted else { return }
        oldestFirst.append(number)
        if oldestFirst.count > Self.limit { numbers.remove(oldestFirst.removeFirst()) }
    }

    func contains(_ number: UInt64) -> Bool { numbers.contains(number) }
}
