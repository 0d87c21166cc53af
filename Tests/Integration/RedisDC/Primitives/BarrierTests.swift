import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Barrier", .serialized)
    struct BarrierTests {
        @Test(
            "no party passes before all have arrived, in any of thousands of generations, and a fast party laps no other"
        )
        func generations() async throws {
            try await withCoordinators { _, one, two, redis in
                let parties = 5
                // scripts/stress sets more.
                let rounds = ProcessInfo.processInfo.environment["REDISDC_GENERATIONS"].flatMap { Int($0) } ?? 400
                let counts = Counts(parties: parties)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<parties {
                        let barrier = try (number.isMultiple(of: 2) ? one : two).barrier("b", parties: parties)
                        group.addTask {
                            for round in 0..<rounds {
                                await counts.arrived(round)
                                let arrival = try await barrier.arriveAndWait(timeout: .seconds(60))
                                await counts.passed(round, arrival)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await counts.faults == [])
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.resources["b"]?.signalled == rounds && audit.resources["b"]?.free == 0)
            }
        }

        @Test("more parties than one script grants at once pass together")
        func many() async throws {
            try await withCoordinators { _, one, two, redis in
                let arrivals = try await withThrowingTaskGroup(of: Arrival.self) { group in
                    for number in 0..<300 {
                        let barrier = try (number.isMultiple(of: 2) ? one : two).barrier("b", parties: 300)
                        group.addTask { try await barrier.arriveAndWait(timeout: .seconds(60)) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(arrivals.map(\.index).sorted() == Array(0..<300))
                #expect(Set(arrivals.map(\.generation)) == [0])
                try await until("all is confirmed") { try await Audit(redis).claims.isEmpty }
            }
        }

        @Test("the last party of a barrier, a phase or an exchange passes by the reply, and only the other is woken")
        func lastParty() async throws {
            try await withCoordinators { _, one, two, redis in
                for round in 0..<3 {
                    async let first = one.barrier("b", parties: 2).arriveAndWait(timeout: .seconds(60))
                    try await until("it waits") { try await two.inspect("b")?.waiterCount == 1 }
                    let last = try await two.barrier("b", parties: 2).arriveAndWait(timeout: .seconds(60))
                    let arrivals = try await [first, last]
                    #expect(arrivals.map(\.index) == [0, 1])
                    #expect(arrivals.allSatisfy { $0.generation == round })
                }
                let early = try await one.phaser("p").register()
                let late = try await two.phaser("p").register()
                async let first = early.arriveAndWait(timeout: .seconds(60))
                try await until("it waits") { try await two.inspect("p")?.waiterCount == 1 }
                let last = try await late.arriveAndWait(timeout: .seconds(60))
                #expect(try await [first, last].map(\.index) == [0, 1])
                try await early.deregister()
                try await late.deregister()
                let (here, there) = try (one.exchanger("e", of: Int.self), two.exchanger("e", of: Int.self))
                async let met = here.exchange(1, timeout: .seconds(60))
                try await until("it waits") { try await two.inspect("e")?.waiterCount == 1 }
                #expect(try await there.exchange(2, timeout: .seconds(60)).others == [1])
                #expect(try await met.others == [2])
                try await until("all is confirmed") { try await Audit(redis).claims.isEmpty }
                #expect(try await redis.calls(of: "publish") == 5, "one for each generation")
            }
        }

        @Test("a party that gives up is removed, and another takes its place")
        func removesParty() async throws {
            try await withCoordinators { _, one, two, redis in
                let barrier = try one.barrier("b", parties: 2)
                for _ in 0..<20 {
                    #expect(
                        await errorOf { try await barrier.arriveAndWait(timeout: .milliseconds(2)) }?.code == .timedOut)
                }
                let cancelled = Task { try await barrier.arriveAndWait() }
                try await until("it waits") { try await two.inspect("b")?.waiterCount == 1 }
                cancelled.cancel()
                _ = await cancelled.result
                async let first = barrier.arriveAndWait(timeout: .seconds(60))
                try await until("one waits") { try await two.inspect("b")?.waiterCount == 1 }
                let last = try await two.barrier("b", parties: 2).arriveAndWait(timeout: .seconds(60))
                #expect(last == Arrival(generation: 0, index: 1))
                #expect(try await first == Arrival(generation: 0, index: 0))
                try await Audit(redis).check()
            }
        }

        @Test("a party whose timeout or cancel succeeded has not been counted", arguments: testSeeds(0..<3))
        func givesUpLate(seed: UInt64) async throws {
            try await withCoordinators { _, one, two, redis in
                let unknown = Names()
                let arrivals = try await withThrowingTaskGroup(of: [Arrival].self) { group in
                    for number in 0..<6 {
                        let barrier = try (number.isMultiple(of: 2) ? one : two).barrier("b", parties: 2)
                        group.addTask {
                            var random = SplitMix(seed: seed &* 100 &+ UInt64(number))
                            var all: [Arrival] = []
                            for round in 0..<80 {
                                let limit = Duration.microseconds(Int.random(in: 200...5000, using: &random))
                                do {
                                    all.append(try await barrier.arriveAndWait(timeout: limit))
                                } catch let error as RedisDCError where error.code == .timedOut {
                                    // On a busy machine Redis may not have answered in time.
                                    if error.mayHaveRun { await unknown.add("\(number)/\(round)") }
                                }
                            }
                            return all
                        }
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                // Both parties of each generation have been told of it.
                let generations = Dictionary(grouping: arrivals, by: \.generation)
                #expect(generations.count > 5)
                let alone = generations.values.count { $0.count == 1 }
                #expect(generations.values.allSatisfy { Set($0.map(\.index)).count == $0.count })
                #expect(await alone <= unknown.all.count)
                let opened = try await Audit(redis).resources["b"]?.signalled ?? 0
                #expect(await opened - generations.count <= unknown.all.count / 2)
            }
        }

        @Test("a party that gives up breaks a barrier that was made so, until it is destroyed")
        func breaks() async throws {
            try await withCoordinators { _, one, two, redis in
                let barrier = try one.barrier("b", parties: 3, failure: .breaks)
                let waiting = Task { await errorOf { try await barrier.arriveAndWait() } }
                try await until("it waits") { try await two.inspect("b")?.waiterCount == 1 }
                let other = try two.barrier("b", parties: 3, failure: .breaks)
                let leaving = Task { await errorOf { try await other.arriveAndWait() } }
                try await until("both wait") { try await two.inspect("b")?.waiterCount == 2 }
                leaving.cancel()
                #expect(await leaving.value?.code == .cancelled)
                #expect(await waiting.value?.code == .broken)
                #expect(await errorOf { try await other.arriveAndWait() }?.code == .broken)
                #expect(try await two.inspect("b")?.kind == .broken)
                #expect(try await barrier.destroy())
                #expect(try await two.inspect("b") == nil)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<3 { group.addTask { try await other.arriveAndWait(timeout: .seconds(60)) } }
                    try await group.waitForAll()
                }
                try await Audit(redis).check()
            }
        }
    }

    @Suite("Phaser", .serialized)
    struct PhaserTests {
        @Test("a phase ends when all parties that are registered then have arrived")
        func phases() async throws {
            try await withCoordinators { _, one, two, redis in
                let phaser = try one.phaser("p")
                let a = try await phaser.register()
                #expect(try await a.arriveAndWait() == Arrival(generation: 0, index: 0))
                let b = try await two.phaser("p").register()
                #expect(await errorOf { try await a.arriveAndWait(timeout: .milliseconds(500)) }?.code == .timedOut)
                async let first = a.arriveAndWait(timeout: .seconds(60))
                try await until("it waits") { try await two.inspect("p")?.waiterCount == 1 }
                #expect(try await b.arriveAndWait(timeout: .seconds(60)) == Arrival(generation: 1, index: 1))
                _ = try await first
                // A party that leaves lets the others continue.
                let waiting = Task { try await a.arriveAndWait(timeout: .seconds(60)) }
                try await until("it waits") { try await two.inspect("p")?.waiterCount == 1 }
                try await b.deregister()
                #expect(try await waiting.value == Arrival(generation: 2, index: 0))
                #expect(await errorOf { try await b.arriveAndWait() }?.code == .lost)
                try await Audit(redis).check()
                try await a.deregister()
                try await until("nothing is left") { try await Audit(redis).resources.isEmpty }
            }
        }

        @Test("an arrival ends with the session of its registration, and counts for nobody in the next one")
        func lostParty() async throws {
            // The session of the other process is not to expire, however long this one's takes.
            try await withCoordinators { _, two, _, redis in
                try await withCoordinator(redis: redis, configuration: mediumTTL) { one in
                    let (phaser, events) = (try one.phaser("p"), one.events())
                    let party = try await phaser.register()
                    let idle = try await two.phaser("p").register()
                    let waiting = Task { try await party.arriveAndWait(timeout: .seconds(60)) }
                    try await until("it waits") { try await two.inspect("p")?.waiterCount == 1 }
                    // The first process's session has expired, as after a long time without a heartbeat.
                    let session = try #require(try await two.inspect("p")?.waiters.first?.session)
                    let (state, field): (RedisArgument, RedisArgument) = (
                        "rdc:{default:0}:book", .string("s:" + session)
                    )
                    var record = try #require(try await redis.send("HGET", state, field).bytes)
                    record.replaceSubrange(0..<8, with: Array(repeating: 0, count: 8))
                    _ = try await redis.send("HSET", state, field, .bytes(record))
                    #expect(await errorOf { _ = try await waiting.value }?.code == .lost)
                    for await event in events { if case .sessionStarted(let id) = event, id != session { break } }
                    _ = try await phaser.register()
                    try await until("nobody waits") { try await two.inspect("p")?.waiterCount == 0 }
                    #expect(idle.lease.isHeld)
                }
            }
        }

        @Test("the 1,025th party is refused with an error that names the limit")
        func most() async throws {
            try await withCoordinators { _, one, two, redis in
                let phaser = try one.phaser("p")
                let parties = try await withThrowingTaskGroup(of: Phaser.Party.self) { group in
                    for _ in 0..<1024 { group.addTask { try await phaser.register() } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                let error = await errorOf { _ = try await two.phaser("p").register() }
                #expect(error?.code == .serverError && error?.message.contains("1024") == true)
                try await Audit(redis).check()
                try await parties[0].deregister()
                try await two.phaser("p").register().deregister()
            }
        }
    }

    @Suite("Double barrier", .serialized)
    struct DoubleBarrierTests {
        @Test("no body begins before all parties have arrived, and no run returns before all bodies have ended")
        func together() async throws {
            try await withCoordinators { _, one, two, _ in
                let names = Names()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<3 {
                        let together = try (number == 0 ? one : two).doubleBarrier("d", parties: 3)
                        group.addTask {
                            await names.add("comes")
                            try await together.run {
                                await names.add("begins")
                                await names.add("ends")
                            }
                            await names.add("leaves")
                        }
                    }
                    try await group.waitForAll()
                }
                let all = await names.all
                #expect(all.prefix(3).allSatisfy { $0 == "comes" })
                #expect(all.suffix(3).allSatisfy { $0 == "leaves" })
            }
        }

        @Test(
            "parties whose bodies throw run again while the others wait, and every round ends",
            .timeLimit(.minutes(10)), arguments: [2, 5])
        func throwing(parties: Int) async throws {
            struct Mishap: Error {}
            let rounds = 60
            try await withCoordinators { _, one, two, redis in
                let ends = RoundEnds()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<parties {
                        let together = try (number == 0 ? one : two).doubleBarrier("d", parties: parties)
                        group.addTask {
                            for round in 0..<rounds {
                                // Each round another party, and every fourth round all but one.
                                let isMishap =
                                    round % 4 == 0 ? number != round % parties : number == round % parties
                                do {
                                    try await together.run {
                                        await ends.began(round)
                                        await ends.ended(round)
                                        if isMishap { throw Mishap() }
                                    }
                                    await ends.returned(round, of: parties)
                                } catch is Mishap {}
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await ends.faults == [])
                try await Audit(redis).check()
            }
        }
    }
}

/// The bodies that have ended, by round.
private actor RoundEnds {
    private(set) var faults: [String] = []
    private var ends: [Int: Int] = [:]
    private var latest = 0

    func began(_ round: Int) {
        if round < latest { faults.append("round \(round) after \(latest)") }
        latest = round
    }

    func ended(_ round: Int) { ends[round, default: 0] += 1 }

    func returned(_ round: Int, of parties: Int) {
        if ends[round] != parties { faults.append("returned from round \(round) after \(ends[round] ?? 0) bodies") }
    }
}

private actor Counts {
    private(set) var faults: [String] = []
    private var arrived: [Int: Int] = [:]
    private var seen: [Int: Set<Int>] = [:]
    private let parties: Int

    init(parties: Int) { self.parties = parties }

    func arrived(_ round: Int) { arrived[round, default: 0] += 1 }

    func passed(_ round: Int, _ arrival: Arrival) {
        if arrived[round] != parties { faults.append("round \(round) opened for \(arrived[round] ?? 0)") }
        if arrival.generation != UInt64(round) { faults.append("\(arrival) in round \(round)") }
        if !seen[round, default: []].insert(arrival.index).inserted { faults.append("\(arrival) twice") }
    }
}
