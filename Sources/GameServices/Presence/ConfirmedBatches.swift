// The batches that Redis has confirmed lately, to be repeated if a failover loses them.
import DequeModule

/// A batch of operations that Redis has confirmed.
struct ConfirmedBatch: Sendable {
    let number: Int
    var operations: [PresenceOperation]
    /// The last results that Redis has given.
    var results: [PresenceResult]
    let confirmedAt: Duration

    /// About the number of bytes that it takes.
    var size: Int { operations.reduce(128) { $0 + 64 + $1.encoded.count } }
}

/// The last confirmed batches of a session, without a gap: their numbers are consecutive.
struct ConfirmedBatches: Sendable {
    private(set) var batches = Deque<ConfirmedBatch>()
    private let maxAge: Duration
    private let maxBytes: Int
    private var bytes = 0

    init(maxAge: Duration, maxBytes: Int) { (self.maxAge, self.maxBytes) = (maxAge, maxBytes) }

    mutating func append(_ batch: ConfirmedBatch) {
        batches.append(batch)
        bytes += batch.size
        forgetOld(batch.confirmedAt)
    }

    /// Forgets what is older than the time, and what exceeds the bytes.
    mutating func forgetOld(_ now: Duration) {
        while let first = batches.first, bytes > maxBytes || first.confirmedAt + maxAge < now {
            bytes -= first.size
            batches.removeFirst()
        }
    }

    /// The batches from one number to another; `nil` if one of them is not known.
    func batches(from first: Int, through last: Int) -> [ConfirmedBatch]? {
        let found = batches.filter { (first...max(first, last)).contains($0.number) }
        return found.count == last - first + 1 ? Array(found) : nil
    }

    /// Records what a repeated batch was answered.
    mutating func update(_ number: Int, _ results: [PresenceResult]) {
        guard let index = batches.firstIndex(where: { $0.number == number }) else { return }
        batches[index].results = results
    }

    /// Lets updates expect the versions that objects have after a repair, in place of those before: new versions are greater
    /// than all that the process has seen.
    mutating func expect(_ versions: [Int: Int]) {
        if versions.isEmpty { return }
        for index in batches.indices {
            batches[index].operations = batches[index].operations.map { $0.expecting(versions) }
        }
    }

    /// Forgets all batches: the session has ended.
    mutating func removeAll() { (batches, bytes) = ([], 0) }
}
