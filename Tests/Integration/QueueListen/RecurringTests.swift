// Recurring sends, with a real server: each occurrence once, whoever declares and carries them out, and dies.
import CoordinationBase
import Foundation
import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

/// Sends that were taken and not finished are taken again after 100 ms.
private func impatient(_ partitions: Int = 1) -> PostOfficeConfiguration {
    var configuration = PostOfficeConfiguration()
    configuration.callTimeout = patience
    configuration.partitions = partitions
    configuration.takeOverAfter = .milliseconds(100)
    return configuration
}

private let names = ["alice", "bob", "carol", "dave", "eve"]
/// Its next time is years ahead.
private let rare = Result { () throws(QueueListenError) in try Recurrence.every(.seconds(3650 * 86_400)) }
private let hourly = Result { () throws(QueueListenError) in try Recurrence.every(.seconds(3600)) }

private func texts(_ office: PostOffice, _ name: String) async throws -> [String] {
    try await office.mailbox(name).peek(limit: 1000).map(\.text)
}

/// Makes an occurrence of a recurring send due, so long ago.
private func makeDue(_ office: PostOffice, _ id: String, ago: Duration) async throws -> Int {
    let home = office.partitions[office.keyspace.partition(of: id)]
    let time = try await office.redis.send("TIME").array?.first?.integer ?? 0
    let due = time * 1000 - ago.wholeMilliseconds
    _ = try await office.redis.send("HSET", .string(home.keys.laterRecord(id)), "d", .integer(due))
    _ = try await office.redis.send("ZADD", .string(home.keys.laterSends), .integer(due), .string(id))
    return due
}

extension QueueListenTests {
    @Suite("Recurring sends", .serialized)
    struct RecurringTests {
        @Test(
            "occurrences are sent once each, by several post offices that have all declared the same",
            arguments: [1, 8])
        func everySecond(partitions: Int) async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: impatient(partitions)) { one in
                    try await withPostOffice(redis: other, configuration: impatient(partitions)) { two in
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for number in 0..<64 {
                                let office = number.isMultiple(of: 2) ? one : two
                                group.addTask {
                                    try await office.send(
                                        "tick", to: "alice", "bob", recurring: .every(.seconds(1)), id: "clock")
                                }
                            }
                            try await group.waitForAll()
                        }
                        #expect(try await one.scheduledSends().count == 1)
                        try await until("three were sent") { try await texts(one, "bob").count >= 3 }
                        #expect(try await two.cancelScheduledSend("clock"))
                        // An occurrence may be on its way.
                        try await until("nothing waits") { try await one.scheduledSends().isEmpty }
                        let messages = try await one.mailbox("bob").peek(limit: 100)
                        let times = messages.compactMap { message in
                            message.id.split(separator: "@").last.flatMap { Int($0.dropLast(2)) }
                        }
                        // Each whole second, unless the machine was too busy.
                        #expect(times == Set(times).sorted() && times.count == messages.count)
                        #expect(times.allSatisfy { $0.isMultiple(of: 1000) })
                        for (message, time) in zip(messages, times) {
                            #expect(message.id == "clock@\(time)/0")
                            #expect(message.sent.timeIntervalSince1970 * 1000 >= Double(time))
                        }
                    }
                }
            }
        }

        @Test(
            "the same declaration changes nothing, another one replaces it, and a cancelled one can be declared again")
        func declared() async throws {
            try await withServer { _, redis, other in
                let office = try PostOffice(redis: redis, configuration: impatient())
                let second = try PostOffice(redis: other, configuration: impatient())
                let rare = try rare.get()
                let first = try await office.send("a", to: "alice", recurring: rare, id: "x")
                #expect(first.recurrence == rare)
                #expect(try await second.send("a", to: "alice", recurring: rare, id: "x") == first)
                #expect(try await second.scheduledSends() == [first])
                // Other messages, another recurrence, and another rule for what is missed.
                let hourly = try await second.send("b", to: "alice", recurring: hourly.get(), id: "x")
                #expect(hourly.time < first.time)
                #expect(try await office.scheduledSends() == [hourly])
                try await second.send("b", to: "alice", recurring: rare, id: "x", missed: .skip(after: .zero))
                #expect(try await office.scheduledSends() == [first])
                // The id of a send at a time is none of a recurring send, and the other way round.
                try await office.send("once", to: "alice", after: .seconds(3600), id: "once")
                let errors = [
                    await errorOf { try await office.send("once", to: "alice", recurring: rare, id: "once") },
                    await errorOf { try await office.send("b", to: "alice", after: .seconds(3600), id: "x") },
                ]
                for error in errors { #expect(error?.code == .conflict) }
                // It does not expire; cancelled, it does.
                let key = RedisArgument.string(office.partitions[0].keys.laterRecord("x"))
                #expect(try await redis.send("PTTL", key).integer == -1)
                #expect(try await second.cancelScheduledSend("x"))
                #expect(try await office.cancelScheduledSend("x"))
                #expect(try await redis.send("PTTL", key).integer ?? -1 > 0)
                #expect(try await office.scheduledSends().map(\.id) == ["once"])
                try await office.send("c", to: "alice", recurring: rare, id: "x")
                #expect(try await redis.send("PTTL", key).integer == -1)
                #expect(try await office.scheduledSends().map(\.id) == ["once", "x"])
            }
        }

        @Test("a missed occurrence is sent once, or not at all if it is too late, and the next one is in the future")
        func missed() async throws {
            try await withServer { _, redis, other in
                let office = try PostOffice(redis: redis, configuration: impatient(8))
                let hourly = try hourly.get()
                let minutes = Duration.seconds(600)
                try await office.send("sent", to: "alice", recurring: hourly, id: "sent")
                try await office.send(
                    "in time", to: "alice", recurring: hourly, id: "in time", missed: .skip(after: minutes))
                try await office.send(
                    "skipped", to: "alice", recurring: hourly, id: "skipped", missed: .skip(after: minutes))
                try await office.send("given up", to: "alice", recurring: hourly, id: "given up")
                let due = try await makeDue(office, "sent", ago: .seconds(4 * 3600))
                _ = try await makeDue(office, "in time", ago: .seconds(300))
                _ = try await makeDue(office, "skipped", ago: .seconds(900))
                _ = try await makeDue(office, "given up", ago: .seconds(30 * 86_400))
                try await withPostOffice(redis: other, configuration: impatient(8)) { running in
                    try await until("nothing is due any more") {
                        try await running.scheduledSends().allSatisfy { $0.time > Date.now - 60 }
                    }
                    #expect(try await running.scheduledSends().count == 4)
                    #expect(try await running.scheduledSends().allSatisfy { $0.recurrence == hourly })
                    let messages = try await running.mailbox("alice").peek(limit: 10)
                    #expect(messages.map(\.text).sorted() == ["in time", "sent"])
                    #expect(messages.contains { $0.id == "sent@\(due)/0" })
                }
            }
        }

        @Test(
            "a post office that dies while it carries out an occurrence is replaced, and the occurrence has one effect",
            arguments: [1, 8], [false, true])
        func carrierDies(partitions: Int, receivesLast: Bool) async throws {
            try await withServer { _, redis, other in
                let observer = try PostOffice(redis: other, configuration: impatient(partitions))
                try await observer.send([Message(text: "x")], to: names, recurring: rare.get(), id: "x")
                let isNotDue = { @Sendable in
                    try await observer.scheduledSends().allSatisfy { $0.time > Date.now }
                }
                var expected: [String] = []
                for steps in 0..<12 {
                    // Each time is another one.
                    let due = try await makeDue(observer, "x", ago: .seconds(1000 - steps))
                    expected.append("x@\(due)/0")
                    let left = Atomic(steps)
                    let end = RedisError(.clientStopped, "dead")
                    let mortal = InterposedRedis(
                        redis,
                        before: { _ in if left.subtract(1, ordering: .relaxed).newValue < 0 { throw end } },
                        after: { _ in if !receivesLast, left.load(ordering: .relaxed) <= 0 { throw end } })
                    try await withPostOffice(redis: mortal, configuration: impatient(partitions)) { _ in
                        try await until("it is dead or has sent it") {
                            if left.load(ordering: .relaxed) < 0 { return true }
                            return try await isNotDue()
                        }
                    }
                    try await withPostOffice(redis: other, configuration: impatient(partitions)) { _ in
                        try await until("it is finished", isNotDue)
                    }
                    for name in names {
                        let ids = try await observer.mailbox(name).peek(limit: 1000).map(\.id)
                        #expect(ids == expected, "\(name)")
                    }
                }
            }
        }

        @Test("an occurrence that is taken by several post offices, again and again, is sent once")
        func takenAgain() async throws {
            try await withServer { _, redis, other in
                let observer = try PostOffice(redis: other, configuration: impatient(8))
                let home = observer.partitions[observer.keyspace.partition(of: "x")]
                try await observer.send([Message(text: "x")], to: names, recurring: rare.get(), id: "x")
                let due = try await makeDue(observer, "x", ago: .seconds(100))
                // Before each request of those that carry it out, it can be taken again.
                let again = InterposedRedis(
                    redis,
                    before: { [other] _ in
                        _ = try? await other.send("ZADD", .string(home.keys.laterSends), "XX", .integer(due), "x")
                    }, after: { _ in })
                try await withPostOffice(redis: again, configuration: impatient(8)) { _ in
                    try await withPostOffice(redis: again, configuration: impatient(8)) { _ in
                        try await until("the next one is in the future, and this one has arrived") {
                            // The list may be of the time before the occurrence and have the times after it.
                            for name in names where try await texts(observer, name).isEmpty { return false }
                            return try await observer.scheduledSends().allSatisfy { $0.time > Date.now }
                        }
                    }
                }
                for name in names {
                    #expect(try await observer.mailbox(name).peek(limit: 100).map(\.id) == ["x@\(due)/0"])
                }
            }
        }

        @Test(
            "a recurring send that is cancelled or replaced while an occurrence is delivered still delivers that one to all"
        )
        func cancelledMeanwhile() async throws {
            try await withServer { _, redis, other in
                let observer = try PostOffice(redis: other, configuration: impatient(8))
                for step in 0..<12 {
                    let id = "x \(step)"
                    try await observer.send([Message(text: id)], to: names, recurring: rare.get(), id: id)
                    _ = try await makeDue(observer, id, ago: .seconds(100))
                    let left = Atomic(step)
                    // Before one of the requests with which it is carried out.
                    let meanwhile = InterposedRedis(
                        redis,
                        before: { _ in
                            guard left.subtract(1, ordering: .relaxed).newValue == -1 else { return }
                            if step.isMultiple(of: 2) {
                                _ = try await observer.cancelScheduledSend(id)
                            } else {
                                try await observer.send(
                                    [Message(text: "other")], to: names, recurring: hourly.get(), id: id)
                            }
                        }, after: { _ in })
                    try await withPostOffice(redis: meanwhile, configuration: impatient(8)) { _ in
                        try await until("it is carried out") {
                            let isNotDue = try await observer.scheduledSends().allSatisfy { $0.time > Date.now }
                            return isNotDue && left.load(ordering: .relaxed) < 0
                        }
                    }
                    // A send across partitions arrives after it is recorded.
                    var counts: [Int] = []
                    try await until("all recipients have it, or none has") {
                        counts = []
                        for name in names {
                            counts.append(try await observer.mailbox(name).peek(limit: 100).count { $0.text == id })
                        }
                        return Set(counts).count == 1
                    }
                    #expect(counts[0] <= 1, "\(step): \(counts)")
                    _ = try await observer.cancelScheduledSend(id)
                }
            }
        }

        @Test("different messages for each recipient can be sent later and again", arguments: [1, 8])
        func shares(partitions: Int) async throws {
            try await withServer { _, redis, other in
                let observer = try PostOffice(redis: other, configuration: impatient(partitions))
                let messages = ["alice": ["a", "b"], "bob": ["c"]].mapValues { $0.map { Message(text: $0) } }
                try await withPostOffice(redis: redis, configuration: impatient(partitions)) { office in
                    try await office.send(messages, after: .zero)
                    try await office.send(messages, at: Date(timeIntervalSince1970: 0))
                    try await office.send(messages, recurring: rare.get(), id: "x")
                    let due = try await makeDue(observer, "x", ago: .seconds(1))
                    try await until("all are sent") {
                        try await observer.scheduledSends().allSatisfy { $0.time > Date.now }
                    }
                    // A send across partitions arrives after it is recorded.
                    try await until("all arrive") {
                        let (alice, bob) = (try await texts(observer, "alice"), try await texts(observer, "bob"))
                        return alice.sorted() == ["a", "a", "a", "b", "b", "b"] && bob == ["c", "c", "c"]
                    }
                    let ids = try await observer.mailbox("alice").peek(limit: 10).map(\.id)
                    #expect(ids.contains("x@\(due)/0") && ids.contains("x@\(due)/1"))
                }
            }
        }

        @Test("a send whose time zone is unknown here is left to others, and does not hinder other sends")
        func unknownZone() async throws {
            try await withServer { _, redis, other in
                let office = try PostOffice(redis: redis, configuration: impatient())
                try await office.send("a", to: "alice", recurring: rare.get(), id: "x")
                let key = RedisArgument.string(office.partitions[0].keys.laterRecord("x"))
                _ = try await redis.send("HSET", key, "r", "once cron Nowhere/City * * * * *")
                _ = try await makeDue(office, "x", ago: .seconds(1))
                try await withPostOffice(redis: other, configuration: impatient()) { running in
                    try await running.send("b", to: "bob", after: .zero)
                    try await until("the other one is sent") { try await texts(running, "bob") == ["b"] }
                    try await until("only the first one waits") {
                        let waiting = try await running.scheduledSends()
                        return waiting.map(\.id) == ["x"] && waiting[0].recurrence == nil
                    }
                    // Here it is known.
                    _ = try await redis.send("HSET", key, "r", "once cron Asia/Tokyo 0 0 1 1 *")
                    try await until("it is sent") { try await texts(running, "alice") == ["a"] }
                    try await until("the next one is in the future") {
                        try await running.scheduledSends().allSatisfy { $0.time > Date.now }
                    }
                }
            }
        }
    }
}
