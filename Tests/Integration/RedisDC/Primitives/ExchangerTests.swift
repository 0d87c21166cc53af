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
        @Test("two parties meet, and each receives the other's value")
        func two() async throws {
            try await withCoordinators { _, one, two, redis in
                let here = try one.exchanger("deal", of: String.self)
                let there = try two.exchanger("deal", of: String.self)
                for round in 0..<20 {
                    async let first = here.exchange("a\(round)", timeout: .seconds(60))
                    try await until("it waits") { try await two.inspect("deal")?.waiterCount == 1 }
                    let second = try await there.exchange("b\(round)", timeout: .seconds(60))
                    let met = try await first
                    #expect(met.values == ["a\(round)", "b\(round)"] && second.values == met.values)
                    #expect(met.others == ["b\(round)"] && second.others == ["a\(round)"])
                    #expect(met.arrival == Arrival(generation: UInt64(round), index: 0))
                    #expect(second.arrival == Arrival(generation: UInt64(round), index: 1))
                }
                try await until("all is fetched") { try await Audit(redis).claims.isEmpty }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.meetings.isEmpty)
            }
        }

        @Test("a shutdown removes the parties that wait")
        func shutdown() async throws {
            try await withServer { _, redis, other in
                try await withCoordinator(redis: other, configuration: longTTL) { two in
                    let waiting = try await withCoordinator(redis: redis, configuration: longTTL) { one in
                        let here = try one.exchanger("e", of: Int.self, parties: 64)
                        let waiting = (0..<50).map { number in Task { try await here.exchange(number) } }
                        try await until("they wait") { try await two.inspect("e")?.waiterCount == 50 }
                        return waiting
                    }
                    for task in waiting { #expect(await errorOf { _ = try await task.value }?.code == .stopped) }
                    #expect(try await two.inspect("e")?.waiterCount ?? 0 == 0)
                    let audit = try await Audit(other)
                    audit.check()
                    #expect(audit.claims.isEmpty)
                }
            }
        }

        @Test("parties whose values were deleted throw .lost, and the next ones meet")
        func valuesDeleted() async throws {
            try await withCoordinators { _, one, two, redis in
                let (here, there) = try (one.exchanger("m", of: Int.self), two.exchanger("m", of: Int.self))
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 2)
                try await buffer.put(1)
                async let first = errorOf { _ = try await here.exchange(1, timeout: .seconds(60)) }
                try await until("it waits") { try await two.inspect("m")?.waiterCount == 1 }
                _ = try await redis.send("DEL", "rdc:{default:0}:values")
                let second = await errorOf { _ = try await there.exchange(2, timeout: .seconds(60)) }
                #expect(await first?.code == .lost && second?.code == .lost)
                #expect(await errorOf { _ = try await buffer.take(timeout: .seconds(60)) }?.code == .lost)

                async let third = here.exchange(3, timeout: .seconds(60))
                #expect(try await there.exchange(4, timeout: .seconds(60)).values.sorted() == [3, 4])
                #expect(try await third.values.sorted() == [3, 4])
            }
        }

        @Test(
            "a party whose timeout or cancel succeeded has met nobody, however late", arguments: testSeeds(0..<3))
        func givesUp(seed: UInt64) async throws {
            try await withCoordinators { _, one, two, redis in
                let log = Meetings()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<6 {
                        let place = try (number.isMultiple(of: 2) ? one : two).exchanger("m", of: String.self)
                        group.addTask {
                            var random = SplitMix(seed: seed &* 100 &+ UInt64(number))
                            for round in 0..<60 {
                                let name = "\(number)/\(round)"
                                let limit = Duration.microseconds(Int.random(in: 200...6000, using: &random))
                                do {
                                    let met = try await place.exchange(name, timeout: limit)
                                    await log.met(name, met.values)
                                } catch let error as RedisDCError where error.code == .timedOut {
                                    // On a busy machine Redis may not have answered in time.
                                    if error.mayHaveRun { await log.mayHaveMet(name) }
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                // Both parties of each meeting have been told of it.
                let meetings = await log.meetings
                #expect(meetings.count > 5)
                let unknown = await log.unknown
                for (values, names) in meetings {
                    #expect(Set(values).subtracting(names).isSubset(of: unknown), "\(values)")
                }
                try await until("all is fetched") { try await Audit(redis).claims.isEmpty }
                try await Audit(redis).check()
            }
        }

        @Test("bad arguments are refused, and waiters of a destroyed exchanger are woken")
        func refused() async throws {
            try await withCoordinators { _, one, two, redis in
                let place = try one.exchanger("m", of: String.self)
                let big = String(repeating: "x", count: Exchange.maxBytes)
                #expect(await errorOf { _ = try await place.exchange(big) }?.code == .invalidArgument)
                #expect(await errorOf { _ = try await place.exchange("", timeout: .zero) }?.code == .invalidArgument)
                #expect(
                    await errorOf { _ = try one.exchanger("m", of: Int.self, parties: 1) }?.code == .invalidArgument)
                let waiting = Task { await errorOf { _ = try await place.exchange("a") } }
                try await until("it waits") { try await two.inspect("m")?.waiterCount == 1 }
                let other = try two.exchanger("m", of: String.self, parties: 3)
                #expect(await errorOf { _ = try await other.exchange("b") }?.code == .conflict)
                #expect(try await two.exchanger("m", of: Int.self).destroy())
                #expect(await waiting.value?.code == .destroyed)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources.isEmpty && audit.claims.isEmpty)
            }
        }
    }
}

private actor Meetings {
    private(set) var meetings: [[String]: Set<String>] = [:]
    private(set) var unknown: Set<String> = []
    func met(_ name: String, _ values: [String]) { meetings[values, default: []].insert(name) }
    func mayHaveMet(_ name: String) { unknown.insert(name) }
}
