// Sends that are due later, and cancellations, that a promoted replica lacks.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

private let patient: PostOfficeConfiguration = {
    var configuration = PostOfficeConfiguration()
    configuration.callTimeout = patience
    return configuration
}()

extension QueueListenTests.FailureTests {
    @Test("what was scheduled or cancelled and a promoted replica lacks is scheduled or cancelled again, and sent once")
    func lostSchedules() async throws {
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { redis in
                // It does not run before the promotion, so nothing is carried out.
                let office = try PostOffice(redis: redis, configuration: patient)
                for number in 0..<100 {
                    try await office.send("kept \(number)", to: "alice", after: .zero, id: "kept \(number)")
                    try await office.send("early \(number)", to: "alice", after: .zero, id: "early \(number)")
                }
                try await servers.cutReplication()
                for number in 0..<300 {
                    try await office.send("late \(number)", to: "alice", after: .zero, id: "late \(number)")
                }
                for number in 0..<100 {
                    #expect(try await office.cancelScheduledSend("early \(number)"))
                    #expect(try await office.cancelScheduledSend("late \(number)"))
                }
                await servers.promote()
                // The first call on the new connection.
                let waiting = try await office.scheduledSends(limit: 1000).map(\.id)
                let expected = (0..<100).map { "kept \($0)" } + (100..<300).map { "late \($0)" }
                #expect(Set(waiting) == Set(expected))
                #expect(waiting.count == expected.count)
                let running = Task { await office.run() }
                try await until("all are sent") { try await office.scheduledSends().isEmpty }
                let sent = try await office.mailbox("alice").peek(limit: 1000).map(\.text)
                #expect(sent.sorted() == expected.sorted())
                running.cancel()
                await running.value
            }
        }
    }

    @Test("a cancellation that arrives before the lost schedule of another process still holds")
    func lostScheduleOfAnotherProcess() async throws {
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { first in
                try await withRedisClient(url: servers.url) { second in
                    let (one, two) = (
                        try PostOffice(redis: first, configuration: patient),
                        try PostOffice(redis: second, configuration: patient)
                    )
                    try await servers.cutReplication()
                    try await one.send("a", to: "alice", after: .zero, id: "x")
                    try await one.send("b", to: "alice", after: .zero, id: "y")
                    #expect(try await two.cancelScheduledSend("x"))
                    await servers.promote()
                    // In either order: the other process may have connected again before.
                    #expect(try await two.scheduledSends().map(\.id).contains("x") == false)
                    #expect(try await one.scheduledSends().map(\.id) == ["y"])
                    #expect(try await two.scheduledSends().map(\.id) == ["y"])
                }
            }
        }
    }

    @Test(
        "a recurring send that a promoted replica lacks, or has as it was before, is declared again as it was last",
        arguments: [true, false])
    func lostRecurring(olderFirst: Bool) async throws {
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { first in
                try await withRedisClient(url: servers.url) { second in
                    let (one, two) = (
                        try PostOffice(redis: first, configuration: patient),
                        try PostOffice(redis: second, configuration: patient)
                    )
                    let old = try Recurrence.every(.seconds(3650 * 86_400))
                    let new = try Recurrence.every(.seconds(86_400))
                    for id in ["kept", "cancelled"] { try await one.send("a", to: "alice", recurring: old, id: id) }
                    try await servers.cutReplication()
                    for id in ["kept", "lost"] {
                        try await one.send("a", to: "alice", recurring: old, id: id)
                        try await two.send("b", to: "alice", recurring: new, id: id)
                    }
                    // The same as before, which the new server will not know either.
                    try await two.send("a", to: "alice", recurring: old, id: "cancelled")
                    #expect(try await one.cancelScheduledSend("cancelled"))
                    await servers.promote()
                    // They connect again with their next calls.
                    for office in olderFirst ? [one, two] : [two, one] { _ = try await office.scheduledSends() }
                    for office in [one, two] {
                        let waiting = try await office.scheduledSends()
                        #expect(Set(waiting.map(\.id)) == ["kept", "lost"])
                        #expect(waiting.allSatisfy { $0.recurrence == new })
                    }
                }
            }
        }
    }
}
