// What Redis has confirmed lately of a leaderboard, to be repeated if a failover loses it.
import CoordinationBase
import DequeModule

/// A submit that Redis has confirmed.
struct ConfirmedSubmit: Sendable {
    let id: String
    let name: String
    let score: Int
    /// The periods in which it counts, also after they have ended.
    let periods: [WindowPeriod]
    /// The time for which Redis keeps the answer to a repetition.
    let answerLifetime: Duration
    /// Whether it was confirmed when it was carried out, and not when it was repeated later.
    let isInOrder: Bool
    /// The time until which Redis certainly keeps the answer, so that a repetition has no second effect.
    var repeatableUntil: Duration
}

/// A removal that Redis has confirmed.
struct ConfirmedRemoval: Sendable {
    let name: String
    /// The entries that it has removed.
    let entries: [(period: WindowPeriod, stamp: String)]
}

/// A change of a leaderboard that Redis has confirmed.
struct ConfirmedChange: ConfirmedRequest {
    enum Kind: Sendable {
        case submit(ConfirmedSubmit)
        case removal(ConfirmedRemoval)
    }

    let number: UInt64
    let confirmedAt: Duration
    var kind: Kind

    var submit: ConfirmedSubmit? { if case .submit(let submit) = kind { submit } else { nil } }

    // Its answer. A removal has none.
    var recordCount: Int { submit == nil ? 0 : 1 }
    var isInOrder: Bool { submit?.isInOrder ?? false }

    /// About the number of bytes that it takes.
    var size: Int {
        switch kind {
        case .submit(let submit): 256 + submit.name.utf8.count + submit.id.utf8.count + 64 * submit.periods.count
        case .removal(let removal): 256 + removal.name.utf8.count + 96 * removal.entries.count
        }
    }
}

/// The last confirmed changes by one process, the oldest first.
struct ConfirmedChanges: ConfirmationLog {
    private(set) var changes = Deque<ConfirmedChange>()
    private let maxAge: Duration
    private let maxBytes: Int
    private var bytes = 0
    /// The number of the next change: those that were confirmed before have lower numbers.
    private(set) var nextNumber: UInt64 = 0

    init(maxAge: Duration, maxBytes: Int) { (self.maxAge, self.maxBytes) = (maxAge, maxBytes) }

    mutating func append(_ submit: ConfirmedSubmit, at now: Duration) {
        insert(.submit(submit), at: changes.count, now)
    }

    /// Adds a removal, and forgets what it has removed.
    ///
    /// A submit that was confirmed during the removal may have come after it. It stays, and is repeated after the removal.
    ///
    /// - Parameter number: the next number when the removal began.
    mutating func insert(_ removal: ConfirmedRemoval, begun number: UInt64, at now: Duration) {
        var index = changes.count
        while index > 0, changes[index - 1].number >= number { index -= 1 }
        let isRemoved = changes[..<index].map { $0.submit.map { Self.isSame($0.name, removal.name) } ?? false }
        if isRemoved.contains(true) {
            let kept = zip(changes, isRemoved).lazy.filter { !$1 }.map(\.0)
            changes = Deque(kept + changes[index...])
            index -= isRemoved.count { $0 }
            bytes = changes.reduce(0) { $0 + $1.size }
        }
        if !removal.entries.isEmpty { insert(.removal(removal), at: index, now) }
    }

    /// Names are compared by their bytes, as Redis compares them.
    private static func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }

    private mutating func insert(_ kind: ConfirmedChange.Kind, at index: Int, _ now: Duration) {
        let change = ConfirmedChange(number: nextNumber, confirmedAt: now, kind: kind)
        nextNumber += 1
        changes.insert(change, at: index)
        bytes += change.size
        forgetOld(now)
    }

    /// Forgets what is older than the time, and what exceeds the bytes.
    mutating func forgetOld(_ now: Duration) {
        while let first = changes.first, bytes > maxBytes || first.confirmedAt + maxAge < now {
            bytes -= first.size
            changes.removeFirst()
        }
    }

    /// Records what became of changes that were missing: the time until which a repeated one can be repeated again; `nil` for
    /// one that must not be repeated.
    mutating func update(_ results: [UInt64: Duration?]) {
        if results.isEmpty { return }
        changes = Deque(
            changes.lazy.compactMap { change in
                guard let result = results[change.number] else { return change }
                guard let until = result, var submit = change.submit else { return nil }
                var change = change
                submit.repeatableUntil = until
                change.kind = .submit(submit)
                return change
            })
        bytes = changes.reduce(0) { $0 + $1.size }
    }

    /// Forgets all changes.
    mutating func removeAll() { (changes, bytes) = ([], 0) }
}
