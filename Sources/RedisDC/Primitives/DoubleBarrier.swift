// A double barrier: the parties begin a piece of work together and finish it together.
import Hiredis

/// A barrier before and after a common piece of work.
///
/// ```swift
/// let together = try coordinator.doubleBarrier("import", parties: 3)
/// try await together.run { try await importMyPart() }
/// ```
///
/// It is a ``Barrier`` at the entrance and a ``Phaser`` at the exit. Each party registers at the
/// exit before it enters.
///
/// **Guarantees**
/// - No body begins before all parties have arrived, and no `run` returns before all bodies have
///   ended.
/// - A party whose body throws, or that dies inside (after its session's TTL), is not awaited at
///   the exit.
///
/// **Limits**
/// - At most 1,024 parties.
/// - The wait at the exit has no timeout; cancel the task to end it.
///
/// Use a ``Barrier`` where the parties need not finish together.
public struct DoubleBarrier: Sendable {
    let entrance: Barrier
    let exit: Phaser

    /// Waits until all parties have arrived, runs `body`, and waits until all bodies have ended.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// session is lost.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait at the entrance, more than 0; `nil` waits without limit.
    ///   - body: the party's part of the work.
    /// - Throws: what `body` throws; what ``Barrier/arriveAndWait(timeout:)`` throws; `.lost` when
    ///   the session was lost.
    public func run<Result>(
        timeout: Duration? = nil, _ body: () async throws -> Result
    ) async throws -> Result {
        try await exit.withParty { party in
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
            entrance: try barrier("\(name)#entrance", parties: parties), exit: try phaser("\(name)#exit"))
    }
}
