import Hiredis
import RedisDC

/// Runs one of n nodes: the first half of each node comes before the second half of every other
/// node.
///
/// Every node has a semaphore. A node that arrives signals those of all others, and waits once for
/// each of them:
///
///     x1
///     for every other node: its semaphore.signal()
///     n - 1 times: my semaphore.wait()
///     x2
///
/// Even and odd rounds have separate semaphores, so that a fast node's signal of the next round is
/// not taken for one of this round.
func node(_ number: Int, of count: Int, _ run: Run, redis: RedisClient) async throws {
    func semaphore(of node: Int, round: Int) throws -> ClassicSemaphore {
        try ClassicSemaphore("\(run.name):\(round % 2):n\(node)", redis: redis)
    }
    for round in 1...run.rounds {
        try await run.log("n\(number).1", round, redis)
        for other in 1...count where other != number {
            try await semaphore(of: other, round: round).signal()
        }
        for _ in 1..<count { try await semaphore(of: number, round: round).wait() }
        try await run.log("n\(number).2", round, redis)
    }
}
