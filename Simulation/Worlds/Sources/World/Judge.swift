// The promises about leases and losses, checked as processes and tasks see them.
@testable import RedisDC

/// What is checked of one family of primitives: what its tasks have seen, against what the library promises.
protocol FamilyJudge: AnyObject {
    init(_ world: World)
    /// Compares what the server has at the end with what tasks have seen.
    func checkEnd(_ ledger: Ledger)
    /// Checks what the server has in between.
    func audit(_ ledger: Ledger)
}

extension FamilyJudge {
    func audit(_ ledger: Ledger) {}
}

/// Checks what tasks experience against what the library promises.
struct Judge {
    /// A section that leases protect.
    struct Room {
        var name: String
        /// What the lease counts for.
        var size = 1
        /// The sum of the sizes that may be inside together.
        var capacity = 1
        /// Whether the fences of those who enter it one after the other grow.
        var hasFences = true
        /// The group whose members count once together.
        var group: String?
    }

    /// A task inside a section that a lease protects.
    struct Holder {
        var room: Room
        var fence: UInt64
        var process: SimulatedProcess
        /// Whether the process may believe that it holds the lease.
        var holds: () -> Bool
        /// Whether the server has the lease. Of those that are inside with too many others, only the ones that it does not
        /// have are lost.
        var isStored: () -> Bool
        /// Whether the task is in the section now.
        var isActive = true
        /// The number of losses of data at its grant.
        var losses: Int
        /// Whether another one was granted what this one held: it must be told.
        var isOwedLoss = false

        fileprivate var isInside: Bool { isActive && !process.isDead && holds() }
    }

    var violations: [String] = []
    var checks = 0
    private var holders: [Int: Holder] = [:]
    private var lastHolder = 0
    private var highestFence: [String: UInt64] = [:]
    /// How often the server has lost data.
    private(set) var losses = 0
    /// Whether the server has lost something that no process has reported, and that none will repair: its process has ended.
    private(set) var hasUnknownLoss = false
    /// When the server's clock was set forward last.
    private var clockStep: Time?
    private var announced = 0

    /// Counts a comparison with what is promised.
    mutating func hasChecked() { checks += 1 }

    /// Mixes in all that decides what the judge will say.
    func mix(into fingerprint: inout Fingerprint) {
        fingerprint.mix(losses, announced, clockStep ?? -1, hasUnknownLoss)
        fingerprint.mixUnordered(highestFence) { $0.mix($1.key, $1.value) }
        fingerprint.mixUnordered(holders.values) {
            $0.mix($1.room.name, $1.fence, $1.process.number, $1.isActive, $1.losses, $1.isOwedLoss)
        }
    }

    // MARK: Losses

    /// The server has lost data.
    mutating func dataLost() { (losses, highestFence) = (losses + 1, [:]) }

    /// Something may be lost that no process repairs.
    mutating func lossIsFinal() { hasUnknownLoss = true }

    /// The server's clock is set forward. For a TTL, sessions may end earlier than their processes believe:
    /// docs/failure-model.md.
    mutating func clockStepped(at now: Time) { clockStep = now }

    /// Whether sessions may have ended earlier than their processes believe.
    func isClockAhead(_ world: World) -> Bool { clockStep.map { world.now - $0 < world.longestTTL } ?? false }

    /// A process has reported a loss.
    mutating func dataLossAnnounced() {
        announced += 1
        if losses == 0 { violations.append("a loss of data was reported, and there was none") }
    }

    // MARK: Leases

    /// A task enters a section with a lease.
    ///
    /// - Returns: the holder's number, for ``leave(_:isToldOfLoss:)``.
    mutating func enter(
        _ room: Room, fence: UInt64, _ process: SimulatedProcess, holds: @escaping () -> Bool,
        isStored: @escaping () -> Bool
    ) -> Int {
        lastHolder += 1
        let number = lastHolder
        // A process that was stopped may learn of a grant that the server has lost since, or that others have had since,
        // because the server's clock was set forward.
        let isOld = (losses > 0 || clockStep != nil) && !isStored()
        holders[number] = Holder(
            room: room, fence: fence, process: process, holds: holds, isStored: isStored,
            losses: isOld ? losses - 1 : losses)
        checkCompany(number)
        if room.hasFences, room.capacity == room.size, !isOld {
            // Members of a group learn of their grants in any order.
            if room.group == nil, let highest = highestFence[room.name], fence <= highest {
                violations.append("\(room.name): fence \(fence) after \(highest)")
            }
            highestFence[room.name] = max(fence, highestFence[room.name] ?? 0)
        }
        return number
    }

    /// Checks who else is inside.
    private mutating func checkCompany(_ number: Int) {
        checks += 1
        let own = holders[number]!
        let others = holders.filter { $0.key != number && $0.value.room.name == own.room.name && $0.value.isInside }
        var groups = Set(own.room.group.map { [$0] } ?? [])
        let sum = others.values.reduce(own.room.size) { sum, other in
            if let group = other.room.group, !groups.insert(group).inserted { return sum }
            return sum + other.room.size
        }
        let isSame = others.values.allSatisfy { $0.room.capacity == own.room.capacity }
        if sum <= own.room.capacity, isSame { return }
        let isClockAhead = isClockAhead(own.process.world)
        let rivals = others.filter { $0.value.room.group == nil || $0.value.room.group != own.room.group }
        let lost = rivals.merging([number: own]) { $1 }.filter { !$0.value.isStored() }
        for number in lost.keys where lost[number]!.losses < losses || isClockAhead {
            holders[number]!.isOwedLoss = true
        }
        if lost.values.contains(where: { $0.losses < losses }) || isClockAhead && !lost.isEmpty { return }
        for other in rivals.values {
            violations.append(
                "\(own.room.name): \(own.process.name) with fence \(own.fence) is inside together with "
                    + "\(other.process.name) with fence \(other.fence)")
        }
    }

    /// A task has left a section, or its lease is lost.
    ///
    /// - Parameter isToldOfLoss: whether the library has told it that the lease was lost.
    mutating func leave(_ number: Int, isToldOfLoss: Bool) {
        guard let holder = holders.removeValue(forKey: number) else { return }
        if holder.isOwedLoss, !isToldOfLoss {
            violations.append("\(holder.room.name): \(holder.process.name) was not told that it had lost its lease")
        }
    }

    /// A task has done what its lease protects, and releases it.
    mutating func finish(_ number: Int) { holders[number]?.isActive = false }

    /// A task goes on with a lease that it has kept, of which it counts for `size` now.
    mutating func goOn(_ number: Int, size: Int? = nil) {
        guard holders[number] != nil else { return }
        holders[number]!.isActive = true
        if let size { holders[number]!.room.size = size }
        checkCompany(number)
    }
}
