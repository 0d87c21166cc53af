// Entering together and leaving together.
import Hiredis

/// A barrier before and after a common piece of work.
///
/// ```swift
/// let together = try coordinator.doubleBarrier("import", parties: 3)
/// try await together.run { try await importMyPart() }
/// ```
///
/// It is a ``Barrier`` at the entrance and a ``Phaser`` at the exit, at which each party is registered before it enters: who
/// dies inside is not waited for at the exit.
public struct DoubleBarrier: Sendable {
    let entrance: Barrier
    let exit: Phaser

    /// Waits until all have come, runs `body`, and waits until all have ended.
    ///
    /// - Parameter timeout: how long to wait at the entrance, from 1 ms; `nil` as long as it takes.
    /// - Throws: what `body` throws (then it is not waited for at the exit); what ``Barrier/arriveAndWait(timeout:)`` throws.
    public func run<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable () async throws -> Result
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
    /// A double barrier that all nodes share.
    ///
    /// - Parameter parties: 1 to 1,024.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func doubleBarrier(_ name: String, parties: Int) throws(RedisDCError) -> DoubleBarrier {
        DoubleBarrier(
            entrance: try barrier("\(name)#entrance", parties: parties), exit: try phaser("\(name)#exit"))
    }
}
