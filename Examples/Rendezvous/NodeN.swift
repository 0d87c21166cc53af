import Hiredis
import RedisDC

/// Rendezvous of n nodes: each one's first half comes before everyone's second half.
///
/// Every node has a semaphore of its own. Who arrives signals all the others and waits once for each of them:
///
///     x1
///     for every other node: its semaphore.signal()
///     n - 1 times: my semaphore.wait()
///     x2
///
/// The turns of two rounds have semaphores of their own (even and odd), so that a fast node's next signal cannot be
/// taken for this round's.
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
