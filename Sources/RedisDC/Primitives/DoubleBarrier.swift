// A double barrier: the parties begin a piece of work together and finish it together.
import Hiredis

/// A barrier before and after a common piece of work.
///
/// ```swift
/// let together = try coordinator.doubleBarrier("import", parties: 3)
/// try await together.run { try await importMyPart() }
/// ```
///
/// It is a ``Barrier`` at the entrance and two ``Phaser``s at the exit, one for every second round.
/// Each party registers at the exit of its round before it enters.
///
/// **Guarantees**
/// - No body begins before all parties have arrived, and no `run` returns before all bodies of its
///   round have ended.
/// - A party whose body throws, or that dies inside (after its session's TTL), is not awaited at
///   the exit. It may run again at once: it waits at the entrance of the next round, and the others
///   finish theirs.
///
/// **Limits**
/// - At most 1,024 parties. No more tasks than parties may run at the same time: one too many is
///   awaited at the exit by those who have entered without it.
/// - The wait at the exit has no timeout; cancel the task to end it.
///
/// Use a ``Barrier`` where the parties need not finish together.
public struct DoubleBarrier: Sendable {
    let entrance: Barrier
    /// The exits of even and odd rounds.
    let exits: [Phaser]
    let coordinator: Coordinator

    /// Waits until all parties have arrived, runs `body`, and waits until all bodies have ended.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// session is lost.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait at the entrance, more than 0; `nil` waits without limit.
    ///   - body: the party's part of the work.
    /// - Throws: what `body` throws; what ``Barrier/arriveAndWait(timeout:)`` and
    ///   ``Coordinator/inspect(_:limit:)`` throw; `.lost` when the session was lost.
    public func run<Result>(
        timeout: Duration? = nil, _ body: () async throws -> Result
    ) async throws -> Result {
        // The number of rounds that have begun, which is that of the next one: it cannot begin without this party.
        let round = try await coordinator.inspect(entrance.name, limit: 1)?.signalled ?? 0
        return try await exits[round % exits.count].withParty { party in
            try await entrance.arriveAndWait(timeout: timeout)
            let result = try await body()
            try await party.arriveAndWait()
            return result
        }
    }
}

extension Coordinator {
    /// Returns a double barrier that all nodes share. All nodes must use the same number of
    /// parties.
    ///
    /// - Parameters:
    ///   - name: 1 to 503 bytes of UTF-8 without control characters or braces.
    ///   - parties: the number of parties that take part, 1 to 1,024.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func doubleBarrier(_ name: String, parties: Int) throws(RedisDCError) -> DoubleBarrier {
        DoubleBarrier(
            entrance: try barrier("\(name)#entrance", parties: parties),
            exits: [try phaser("\(name)#exit0"), try phaser("\(name)#exit1")], coordinator: self)
    }
}
