// The slots of a session, and the consumed permits whose arrival the server does not know yet.
import DequeModule

/// The slots of a session: see slots.lua.
///
/// A free slot may still be unconfirmed: it has consumed permits that this process has received. The next request in the
/// slot confirms them, unless it is refused. Those whose slots are not reused soon are confirmed by requests of their
/// own: ``takeConfirmations(inSharesOf:)``.
struct Slots: Sendable {
    /// A slot whose consumed permits have arrived, and the number of the request for them.
    struct Confirmation: Sendable, Equatable {
        var slot: Int
        var number: UInt64
    }

    private var isUsed: [Bool] = []
    /// The slots that are free. The one that was freed last is used first, which confirms it, and keeps their number low.
    private var free: [Int] = []
    /// The last request in each slot that the process has given up, by slot. Permits that Redis has granted to it were not
    /// received. A slot is used again when the claim in it has ended, so no request whose permits may still come is
    /// forgotten, however many there are.
    private var refused: [Int: UInt64] = [:]
    /// Those that were given up in the same slots before: their claims have ended, but a failover may lose the end and bring the
    /// claim back.
    private var refusedBefore: Set<UInt64> = []
    private var refusedUntil: Deque<(number: UInt64, end: Duration)> = []
    /// How many of those are remembered, the latest.
    static let maxRefusedBefore = 65_536
    /// The numbers of the requests whose consumed permits have arrived, by slot.
    private(set) var unconfirmed: [Int: UInt64] = [:]
    /// The time at which they must be confirmed at the latest; `nil` when there are none.
    private(set) var dueAt: Duration?

    /// Returns a slot that was never used.
    mutating func takeNew() -> Int {
        isUsed.append(true)
        return isUsed.count - 1
    }

    /// Returns a free slot, and the number of the request that its reuse confirms.
    mutating func take() -> (slot: Int, confirms: UInt64?) {
        guard let slot = free.popLast() else { return (takeNew(), nil) }
        isUsed[slot] = true
        if unconfirmed.isEmpty { return (slot, nil) }
        let confirms = unconfirmed.removeValue(forKey: slot)
        if unconfirmed.isEmpty { dueAt = nil }
        return (slot, confirms)
    }

    /// Frees a slot. Does nothing when it is free.
    mutating func give(_ slot: Int) {
        guard slot < isUsed.count, isUsed[slot] else { return }
        isUsed[slot] = false
        free.append(slot)
    }

    /// Records that the process has given up the request with this number, which has this slot.
    ///
    /// - Parameter end: until when a failover may bring back the claim of the one before in this slot.
    mutating func refuse(_ slot: Int, _ number: UInt64, _ now: Duration, until end: Duration) {
        while let first = refusedUntil.first, first.end < now || refusedUntil.count >= Self.maxRefusedBefore {
            refusedUntil.removeFirst()
            refusedBefore.remove(first.number)
        }
        guard let before = refused.updateValue(number, forKey: slot), before != number else { return }
        refusedBefore.insert(before)
        refusedUntil.append((before, end))
    }

    /// Whether the process has given up the request with this number, which had this slot.
    func isRefused(_ slot: Int, _ number: UInt64) -> Bool {
        refused[slot] == number || refusedBefore.contains(number)
    }

    /// Records that the arrival of this request's consumed permits is to be confirmed, unless a later request in the slot is
    /// to be confirmed: that one has confirmed it. The due time changes only if there was none.
    mutating func addUnconfirmed(_ slot: Int, _ number: UInt64, at due: Duration) {
        guard number > unconfirmed[slot] ?? 0 else { return }
        unconfirmed[slot] = number
        dueAt = dueAt ?? due
    }

    /// Removes all confirmations and returns them, the oldest first, in shares of at most `size`.
    mutating func takeConfirmations(inSharesOf size: Int) -> [[Confirmation]] {
        let all = unconfirmed.sorted { $0.value < $1.value }.map { Confirmation(slot: $0.key, number: $0.value) }
        (unconfirmed, dueAt) = ([:], nil)
        return stride(from: 0, to: all.count, by: size).map { Array(all[$0..<min($0 + size, all.count)]) }
    }
}
