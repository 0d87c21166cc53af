import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Exchanger", .serialized)
    struct ExchangerTests {
        @Test("the maximum number of parties meet with values of the maximum size")
        func many() async throws {
            try await withCoordinators { _, one, two, redis in
                let parties = 64
                let big = String(repeating: "x", count: Exchange.maxBytes - 10)
                let meetings = try await withThrowingTaskGroup(of: [String].self) { group in
                    for number in 0..<parties {
                        let place = try (number.isMultiple(of: 2) ? one : two).exchanger(
                            "m", of: String.self, parties: parties)
                        group.addTask {
                            try await place.exchange("\(number) \(big)", timeout: .seconds(60)).values
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(Set(meetings.map { $0.map { $0.prefix(3) } }).count == 1)
                #expect(Set(meetings[0].map { $0.prefix { $0 != " " } }).count == parties)
                try await until("all is fetched") { try await Audit(redis).claims.isEmpty }
                try await Audit(redis).check()
            }
        }

        @Test("no party meets a dead one, and a party that dies after the meeting takes nothing from the others")
        func death() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "m", "exchanger", "dead"])
                try await until("it waits") { try await node.inspect("m")?.waiterCount == 1 }
                try await victim.kill9()
                try await until("its session is over") { try await Audit(redis).sessions.count == 1 }
                let place = try node.exchanger("m", of: String.self)
                async let first = place.exchange("a", timeout: .seconds(60))
                async let second = place.exchange("b", timeout: .seconds(60))
                #expect(try await Set([first.others, second.others]) == [["a"], ["b"]])
                // A party that meets another and dies before it fetches the values.
                let dying = try await ForeignNode(redis)
                #expect(try await dying.request("arrive", "m", ["eo", "2", "e", "\"c\""]) == ["0"])
                #expect(try await place.exchange("d", timeout: .seconds(60)).values == ["c", "d"])
                // The parties of the first meeting and of this one release it in the background.
                try await until("only what it has not fetched is left") { try await Audit(redis).meetings.count == 1 }
                try await dying.expire()
                try await until("what it did not fetch is gone") { try await Audit(redis).meetings.isEmpty }
                try await Audit(redis).check()
            }
        }
    }
}
