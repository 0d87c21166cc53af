// The promises, checked as processes and tasks see them.
@testable import RedisDC

/// Checks what tasks experience against what the library promises.
struct Judge {
    /// A task inside a section that a lease protects.
    struct Holder {
        var room: String
        var size: Int
        var fence: UInt64
        var process: SimulatedProcess
        var claim: UInt64
        /// The number of losses of data at its grant.
        var losses: Int
        /// Whether another one was granted what this one held: it must be told.
        var isOwedLoss = false
    }

    /// The knowledge of permits that are consumed.
    struct Tokens {
        var signalled = 0
        var maybeSignalled = 0
        var consumed = 0
        var maybeConsumed = 0

        /// A permit that may have been consumed certainly was.
        mutating func isConsumed() { (maybeConsumed, consumed) = (maybeConsumed - 1, consumed + 1) }
        /// A permit that was consumed may be there again.
        mutating func doubtConsumed() { (maybeConsumed, consumed) = (maybeConsumed + 1, consumed - 1) }
        /// A permit that may have been signalled certainly was.
        mutating func isSignalled() { (maybeSignalled, signalled) = (maybeSignalled - 1, signalled + 1) }
    }

    var violations: [String] = []
    private(set) var checks = 0
    private var holders: [Int: Holder] = [:]
    private var lastHolder = 0
    private var highestFence: [String: UInt64] = [:]
    private var tokens: [String: Tokens] = [:]
    private var initial: [String: Int] = [:]
    private var passed: [String: [UInt64: [Int]]] = [:]
    /// How often the server has lost data.
    private(set) var losses = 0
    /// When the server's clock was set forward last.
    private var clockStep: Time?
    private var announced = 0

    /// Counts a comparison with what is promised.
    mutating func hasChecked() { checks += 1 }

    // MARK: Losses

    /// The server has lost data.
    mutating func dataLost() { (losses, highestFence) = (losses + 1, [:]) }

    /// The server's clock is set forward. For a TTL, sessions may end earlier than their processes believe:
    /// docs/failure-model.md.
    mutating func clockStepped(at now: Time) { clockStep = now }

    /// A process has reported a loss.
    mutating func dataLossAnnounced() {
        announced += 1
        if losses == 0 { violations.append("a loss of data was reported, and there was none") }
    }

    // MARK: Leases

    /// A task enters a section with a lease.
    ///
    /// - Parameter capacity: the sum of the sizes that may be inside together.
    /// - Returns: the holder's number, for ``leave(_:isToldOfLoss:)``.
    mutating func enter(
        _ room: String, _ size: Int, of capacity: Int, fence: UInt64, _ process: SimulatedProcess, claim: UInt64
    ) -> Int {
        checks += 1
        let isClockAhead = clockStep.map { process.world.now - $0 < process.ttl } ?? false
        let others = holders.filter { $0.value.room == room && $0.value.isInside }
        if others.values.reduce(size, { $0 + $1.size }) > capacity {
            for (number, other) in others {
                if other.losses < losses || isClockAhead {
                    holders[number]!.isOwedLoss = true
                } else {
                    violations.append(
                        "\(room): \(process.name) with fence \(fence) is inside together with \(other.process.name) with fence \(other.fence)"
                    )
                }
            }
        }
        if let highest = highestFence[room], capacity == size, fence <= highest {
            violations.append("\(room): fence \(fence) after \(highest)")
        }
        if capacity == size { highestFence[room] = max(fence, highestFence[room] ?? 0) }
        lastHolder += 1
        holders[lastHolder] = Holder(
            room: room, size: size, fence: fence, process: process, claim: claim, losses: losses)
        return lastHolder
    }

    /// A task has left a section, or its lease is lost.
    ///
    /// - Parameter isToldOfLoss: whether the library has told it that the lease was lost.
    mutating func leave(_ number: Int, isToldOfLoss: Bool) {
        guard let holder = holders.removeValue(forKey: number) else { return }
        if holder.isOwedLoss, !isToldOfLoss {
            violations.append("\(holder.room): \(holder.process.name) was not told that it had lost its lease")
        }
    }

    /// A task has done what its lease protects, and releases it.
    mutating func finish(_ number: Int) { holders[number]?.size = 0 }

    // MARK: Permits that are consumed

    mutating func declare(_ name: String, permits: Int) { initial[name] = permits }

    mutating func count(_ name: String, _ change: (inout Tokens) -> Void) { change(&tokens[name, default: Tokens()]) }

    // MARK: Barriers

    mutating func passes(_ name: String, parties: Int, generation: UInt64, index: Int) {
        checks += 1
        if losses > 0 { return }
        passed[name, default: [:]][generation, default: []].append(index)
        let indices = passed[name]![generation]!
        if indices.count > parties || Set(indices).count < indices.count || index >= parties {
            violations.append("\(name): generation \(generation) was passed by \(indices) of \(parties) parties")
        }
    }

    // MARK: The end

    /// Compares what the server has at the end with what tasks have seen.
    mutating func checkEnd(_ ledger: Ledger) {
        if !ledger.claims.isEmpty { violations.append("claims are left: \(ledger.claims)") }
        if losses > 0 { return }
        for (name, permits) in initial {
            checks += 1
            let counts = tokens[name] ?? Tokens()
            let free = ledger.resources[name]?.free ?? permits
            let least = permits + counts.signalled - counts.consumed - counts.maybeConsumed
            let most = permits + counts.signalled + counts.maybeSignalled - counts.consumed
            if free < least || free > most {
                violations.append("\(name) has \(free) permits, expected \(least) to \(most): \(counts)")
            }
        }
    }
}

extension Judge.Holder {
    /// Whether the process may believe that it is inside.
    fileprivate var isInside: Bool { !process.isDead && process.holds(claim) && size > 0 }
}
