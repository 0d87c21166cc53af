// Shutdowns while items wait for the end of their retry delays.
import Hiredis
import RedisDC
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests.BoundedBufferTests {
    @Test("a shutdown ends the retry delays", arguments: [1, 500])
    func shutdownEndsDelays(count: Int) async throws {
        struct Unlucky: Error {}
        // A heartbeat every 3 hours.
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(10 * 3600)
        // One release needs no other process. Of many, some may time out on a busy machine: another process repeats them.
        let timeout: Duration = count == 1 ? .zero : .seconds(60)
        try await withServer { _, redis, other in
            try await withCoordinator(redis: other, configuration: configuration) { two in
                try await withCoordinator(redis: redis, configuration: configuration) { one in
                    let buffer = try one.boundedBuffer("b", of: Int.self, capacity: count)
                    for number in 0..<count { try await buffer.put(number) }
                    for _ in 0..<count {
                        await #expect(throws: Unlucky.self) {
                            try await buffer.withItem(retryDelay: .seconds(3600)) { _ in throw Unlucky() }
                        }
                    }
                }
                let buffer = try two.boundedBuffer("b", of: Int.self, capacity: count)
                var items: [Int] = []
                for _ in 0..<count { items.append(try await buffer.take(timeout: timeout)) }
                #expect(items.sorted() == Array(0..<count))
            }
        }
    }

    @Test("a shutdown deletes an item whose retry delay is not over if its buffer was destroyed")
    func shutdownAfterDestroy() async throws {
        struct Unlucky: Error {}
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(10 * 3600)
        // The hash of the values, which always has one field.
        let values: RedisArgument = "rdc:{default:0}:values"
        try await withServer { _, redis, other in
            try await withCoordinator(redis: other, configuration: configuration) { two in
                try await withCoordinator(redis: redis, configuration: configuration) { one in
                    let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 1)
                    try await buffer.put(1)
                    await #expect(throws: Unlucky.self) {
                        try await buffer.withItem(retryDelay: .seconds(3600)) { _ in throw Unlucky() }
                    }
                    #expect(try await two.boundedBuffer("b", of: Int.self, capacity: 1).destroy())
                    #expect(try await other.send("HLEN", values).integer == 2)
                }
                #expect(try await other.send("HLEN", values).integer == 1)
            }
        }
    }
}
