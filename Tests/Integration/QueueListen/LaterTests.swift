// Sends that are due later, with a real server: carried out once, when they are due, whoever dies.
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

/// The number of sends that wait or are being carried out.
private func waiting(_ office: PostOffice) async throws -> Int {
    try await office.scheduledSends(limit: 10_000).count
}

private func texts(_ office: PostOffice, _ name: String) async throws -> [String] {
    try await office.mailbox(name).peek(limit: 1000).map(\.text)
}

/// A Redis that keeps the calls of one script, to send copies of them.
private final class Copies: RedisDecorator {
    let redis: RedisClient
    private let script: RedisScript
    private let calls = Locked<[(keys: [String], arguments: [RedisArgument])]>([])

    init(_ redis: RedisClient, of script: RedisScript) { (self.redis, self.script) = (redis, script) }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        if script === self.script { calls.withLock { $0.append((keys, arguments)) } }
        return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    /// All calls so far arrive once more.
    func arriveAgain() async throws {
        for call in calls.withLock({ $0 }) {
            _ = try await redis.script(script, keys: call.keys, arguments: call.arguments, timeout: nil)
        }
    }
}

extension QueueListenTests {
    @Suite("Sends that are due later", .serialized)
    struct LaterTests {
        @Test("messages are sent when they are due, and not before", arguments: [1, 8])
        func whenDue(partitions: Int) async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: impatient(partitions)) { office in
                    try await withPostOffice(redis: other, configuration: impatient(partitions)) { _ in
                        let last = try await office.send("last", to: "alice", "bob", after: .milliseconds(600))
                        let first = try await office.send("first", to: "alice", "bob", after: .milliseconds(100))
                        let at = try await office.send("at", to: "alice", at: last.time + 0.2)
                        try await office.send("now", to: "alice", "bob")
                        let far = try await office.send("far", to: "alice", after: .seconds(86_400))
                        #expect(try await office.scheduledSends().last == far)
                        #expect(at.time.timeIntervalSince(last.time) > 0.19)
                        try await until("all are sent") { try await office.scheduledSends() == [far] }
                        let messages = try await office.mailbox("alice").peek(limit: 10)
                        // On a busy machine they may be late, and then in another order.
                        let sends = ["first": first, "last": last, "at": at]
                        #expect(Set(messages.map(\.text)) == Set(sends.keys).union(["now"]) && messages.count == 4)
                        for message in messages {
                            guard let send = sends[message.text] else { continue }
                            #expect(message.sent >= send.time)
                            #expect(message.id == "\(send.id)/0")
                        }
                        #expect(try await texts(office, "bob").sorted() == ["first", "last", "now"])
                    }
                }
            }
        }

        @Test("a time in the past is due now, however long ago it was", arguments: [0.0, 1e9, 1.7e9])
        func past(time: Double) async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: impatient()) { office in
                    try await office.send("late", to: "alice", at: Date(timeIntervalSince1970: time))
                    try await until("it is sent") { try await texts(office, "alice") == ["late"] }
                    try await until("it is finished") { try await waiting(office) == 0 }
                }
            }
        }

        @Test("1,000 sends that are due at once are carried out once each, by several post offices")
        func many() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: impatient()) { one in
                    try await withPostOffice(redis: other, configuration: impatient()) { two in
                        let time = Date(timeIntervalSinceNow: 1)
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for number in 0..<1000 {
                                let office = number.isMultiple(of: 2) ? one : two
                                group.addTask {
                                    try await office.send("\(number)", to: "box \(number % 2)", at: time)
                                }
                            }
                            try await group.waitForAll()
                        }
                        try await until("all are sent") { try await waiting(one) == 0 }
                        for box in 0..<2 {
                            let sent = try await texts(one, "box \(box)").compactMap { Int($0) }
                            #expect(sent.sorted() == (0..<500).map { 2 * $0 + box })
                        }
                    }
                }
            }
        }

        @Test("a repeated call has no second effect, and one for another send is refused")
        func repeated() async throws {
            try await withServer { _, redis, _ in
                // It does not run, so nothing is carried out.
                let office = try PostOffice(redis: redis, configuration: impatient())
                let first = try await office.send("a", to: "alice", after: .seconds(3600), id: "x")
                #expect(try await office.send("a", to: "alice", after: .seconds(60), id: "x") == first)
                let conflict = await errorOf { try await office.send("b", to: "alice", after: .seconds(60), id: "x") }
                #expect(conflict?.code == .conflict)
                #expect(try await office.scheduledSends() == [first])
                // The ids of sends of now are others.
                try await office.send("now", to: "alice", id: "x")
                // Cancelled, the id can be used again.
                #expect(try await office.cancelScheduledSend("x"))
                #expect(try await office.cancelScheduledSend("x"))
                #expect(try await office.scheduledSends() == [])
                let second = try await office.send("b", to: "alice", after: .zero, id: "x")
                #expect(second.time < first.time)
                let running = Task { await office.run() }
                try await until("it is sent") { try await texts(office, "alice") == ["now", "b"] }
                try await until("it is finished") { try await waiting(office) == 0 }
                #expect(try await office.cancelScheduledSend("x") == false)
                #expect(try await office.cancelScheduledSend("unknown") == false)
                // Sent, it is not sent again.
                try await office.send("b", to: "alice", after: .zero, id: "x")
                try await office.send("c", to: "alice", after: .zero)
                try await until("a later one is sent") { try await texts(office, "alice").contains("c") }
                #expect(try await texts(office, "alice") == ["now", "b", "c"])
                running.cancel()
                await running.value
            }
        }

        @Test("a copy of a call that arrives after it was cancelled or carried out has no effect")
        func lateCopies() async throws {
            try await withServer { _, redis, _ in
                let copies = Copies(redis, of: Scripts.schedule)
                try await withPostOffice(redis: copies, configuration: impatient()) { office in
                    for _ in 0..<3 {
                        try await office.send("cancelled", to: "alice", after: .seconds(3600), id: "x")
                        #expect(try await office.cancelScheduledSend("x"))
                        try await copies.arriveAgain()
                        #expect(try await waiting(office) == 0)
                    }
                    try await office.send("sent", to: "alice", after: .zero, id: "y")
                    try await until("it is sent") { try await waiting(office) == 0 }
                    try await copies.arriveAgain()
                    #expect(try await waiting(office) == 0)
                    try await office.send("last", to: "alice", after: .zero)
                    try await until("it is sent") { try await texts(office, "alice").contains("last") }
                    #expect(try await texts(office, "alice") == ["sent", "last"])
                }
            }
        }

        @Test(
            "a post office that dies while it carries out a send is replaced, and the send has one effect",
            arguments: [1, 8], [false, true])
        func carrierDies(partitions: Int, receivesLast: Bool) async throws {
            try await withServer { _, redis, other in
                let observer = try PostOffice(redis: other, configuration: impatient(partitions))
                for steps in 0..<12 {
                    let text = "\(steps)"
                    try await observer.send([Message(text: text)], to: names, after: .zero)
                    let left = Atomic(steps)
                    let end = RedisError(.clientStopped, "dead")
                    let mortal = InterposedRedis(
                        redis,
                        before: { _ in if left.subtract(1, ordering: .relaxed).newValue < 0 { throw end } },
                        after: { _ in if !receivesLast, left.load(ordering: .relaxed) <= 0 { throw end } })
                    try await withPostOffice(redis: mortal, configuration: impatient(partitions)) { _ in
                        try await until("it is dead or has sent it") {
                            if left.load(ordering: .relaxed) < 0 { return true }
                            return try await waiting(observer) == 0
                        }
                    }
                    try await withPostOffice(redis: other, configuration: impatient(partitions)) { office in
                        try await until("it is finished") { try await waiting(office) == 0 }
                    }
                    for name in names {
                        #expect(try await texts(observer, name) == (0...steps).map { "\($0)" }, "\(name)")
                    }
                }
            }
        }

        @Test("a send is carried out when a post office runs, and tried again until it succeeds")
        func triedAgain() async throws {
            try await withServer { _, redis, other in
                let office = try PostOffice(redis: redis, configuration: impatient())
                _ = try await other.send("SET", "ql:{default:0}:box:alice", "not a mailbox")
                try await office.send("a", to: "alice", after: .zero)
                try await office.send("b", to: "bob", after: .zero)
                let running = Task { await office.run() }
                try await until("the other one is sent") { try await texts(office, "bob") == ["b"] }
                try await until("only the first one waits") { try await waiting(office) == 1 }
                _ = try await other.send("DEL", "ql:{default:0}:box:alice")
                try await until("it is sent") { try await waiting(office) == 0 }
                #expect(try await texts(office, "alice") == ["a"])
                running.cancel()
                await running.value
            }
        }

        @Test("sends beyond the maximum, and times that are not allowed, are refused")
        func refused() async throws {
            try await withServer { _, redis, _ in
                var configuration = impatient()
                configuration.maxScheduledSends = 2
                let office = try PostOffice(redis: redis, configuration: configuration)
                for _ in 0..<2 { try await office.send("a", to: "alice", after: .seconds(3600)) }
                let error = await errorOf { try await office.send("a", to: "alice", after: .seconds(1)) }
                #expect(error?.code == .tooManyScheduled)
                #expect(try await waiting(office) == 2)
                for delay in [Duration.milliseconds(-1), .seconds(3651 * 86400)] {
                    let error = await errorOf { try await office.send("a", to: "alice", after: delay) }
                    #expect(error?.code == .invalidArgument)
                }
                for time in [Date.distantPast, .distantFuture + 1e12] {
                    let error = await errorOf { try await office.send("a", to: "alice", at: time) }
                    #expect(error?.code == .invalidArgument)
                }
                // Every record expires.
                for key in try await redis.send("KEYS", "*:later:*").array?.compactMap(\.string) ?? [] {
                    #expect(try await redis.send("PTTL", .string(key)).integer ?? -1 > 0)
                }
            }
        }
    }
}
