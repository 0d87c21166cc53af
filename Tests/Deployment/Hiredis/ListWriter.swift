import Hiredis
import Synchronization
import TestSupport

@testable import HiredisTestSupport

/// Appends numbers to a list one after the other, and records what the client says about each.
final class ListWriter: Sendable {
    let acknowledged = Record<Int>()
    /// The error says that the command may have run.
    let unknown = Record<Int>()
    /// The error says that the command has not run.
    let notRun = Record<Int>()
    private let startedNumbers = Record<Int>()
    private let redis: RedisClient
    private let timeout: Duration
    private let appending = Mutex<Task<Void, Never>?>(nil)

    /// The last number whose command was begun.
    var started: Int { startedNumbers.count - 1 }

    private init(_ redis: RedisClient, _ timeout: Duration) { (self.redis, self.timeout) = (redis, timeout) }

    /// Starts to append, and returns when the first elements are acknowledged.
    ///
    /// - Parameter timeout: the timeout of each command.
    static func start(_ redis: RedisClient, timeout: Duration = .seconds(1)) async throws -> ListWriter {
        let writer = ListWriter(redis, timeout)
        writer.appending.withLock { $0 = Task { await writer.append() } }
        try await writer.progress()
        return writer
    }

    /// Waits until more elements are acknowledged.
    ///
    /// - Returns: the number of those that were acknowledged before.
    @discardableResult
    func progress(_ count: Int = 100) async throws -> Int {
        let before = acknowledged.count
        try await until("\(count) more elements are written") { acknowledged.count >= before + count }
        return before
    }

    /// Stops appending. The last command has ended then.
    func stop() async {
        let task = appending.withLock { $0 }
        task?.cancel()
        await task?.value
    }

    private func append() async {
        var number = 0
        while !Task.isCancelled {
            startedNumbers.add(number)
            do throws(RedisError) {
                _ = try await redis.send(["RPUSH", "list", .integer(number)], timeout: timeout)
                acknowledged.add(number)
            } catch {
                (error.mayHaveRun ? unknown : notRun).add(number)
            }
            number += 1
        }
    }
}
