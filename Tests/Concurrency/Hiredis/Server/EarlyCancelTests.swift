import NIOCore
import RedisDCTesting
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

extension ServerTests.FailureTests {
    @Test("a cancellation that comes before its command ends the command, even if the server does not reply")
    func cancelledEarly() async throws {
        // The server is silent during all of the cancellations, however long they take.
        try await withServer(configure: { $0.silenceLimit = .seconds(600) }) { server, redis in
            _ = try await redis.send("PING")
            let connection = try #require(redis.onlyNode.link.current)
            try await server.pause()
            // The event loop often handles the cancellation before the command is submitted.
            for _ in 0..<2000 {
                let task = Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    return await connection.send(["PING"], timeout: .seconds(60))
                }
                let error = await redisError { _ = try await task.value.get() }
                try #require(error?.code == .cancelled)
            }
            try await server.resume()
        }
    }
}
