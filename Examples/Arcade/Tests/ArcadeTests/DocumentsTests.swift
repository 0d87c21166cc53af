import GameServices
import Games
import Gateway
import Hiredis
import Logging
import QueueListen
import RedisDC
import RedisDCTesting
import Testing

@testable import arcade

@Suite("Documents", .timeLimit(.minutes(2)))
struct DocumentsTests {
    private struct Counter: Codable, Sendable { var count = 0 }

    @Test("many changes at once lose none")
    func changes() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                let documents = Documents("test", redis: redis, namespace: "arcade")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            for _ in 0..<25 {
                                _ = try await documents.change("counter", initial: Counter()) {
                                    $0.count += 1
                                    return true
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                let read = try await documents.read("counter", Counter.self)
                #expect(read?.value.count == 200 && read?.version == 200)
            }
        }
    }

    @Test("a document is due until the consequences of its last version are carried out")
    func due() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                let documents = Documents("test", redis: redis, namespace: "arcade")
                for _ in 0..<2 {
                    _ = try await documents.change("counter", initial: Counter()) {
                        $0.count += 1
                        return true
                    }
                }
                // A body that changes nothing writes nothing.
                let same = try await documents.change("counter", initial: Counter()) { _ in false }
                #expect(same.version == 2)
                #expect(try await documents.overdue(seconds: 0) == ["counter"])
                #expect(try await documents.overdue(seconds: 60).isEmpty)
                try await documents.finish("counter", version: 1)
                #expect(try await documents.overdue(seconds: 0) == ["counter"])
                try await documents.finish("counter", version: 2)
                #expect(try await documents.overdue(seconds: 0).isEmpty)
                await #expect(throws: CallRefusal.self) {
                    _ = try await documents.change("none") { (_: inout Counter) in true }
                }
            }
        }
    }

    @Test("what a node that died has left is done by others, once: messages to both players, and their IQ")
    func carriedOutByAnother() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                try await withPostOffice(redis: redis, namespace: "arcade") { office in
                    // A match that has ended, as its node has stored it before it died.
                    let documents = Documents("duel", redis: redis, namespace: "arcade")
                    var generator = SystemRandomNumberGenerator()
                    var match = DuelMatch(
                        ["alice", "bob"], [DuelPlayer(), DuelPlayer()], beginning: "1", isRandom: false,
                        using: &generator)
                    _ = match.duel.quit("bob")
                    _ = try await documents.change("match:alice+bob", initial: match) { _ in true }

                    let logger = Logger(label: "test")
                    let coordinator = try Coordinator(redis: redis, namespace: "arcade")
                    let accounts = Accounts(
                        redis: redis, namespace: "arcade", coordinator: coordinator, office: office,
                        mail: LoggingMailSender(logger: logger), logger: logger)
                    let presence = try Presence(redis: redis, namespace: "arcade")
                    let attendance = try Attendance(presence, logger: logger)
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<2 {
                            let node = try DuelService(
                                redis: redis, office: office, accounts: accounts, attendance: attendance,
                                push: LoggingPushSender(logger: logger), namespace: "arcade", logger: logger)
                            group.addTask { try await node.run() }
                        }
                        for (name, iq) in [("alice", 105), ("bob", 95)] {
                            let mailbox = try office.mailbox(name)
                            let delivery = try await mailbox.listen(timeout: .seconds(60))
                            #expect(delivery.messages.map(\.type) == ["duel"])
                            let view = try #require(try delivery.messages.first?.decode(as: DuelMatch.View.self))
                            #expect(view.phase == "over" && view.result?.outcome == "quit")
                            while try await !documents.overdue(seconds: 0).isEmpty { await Task.yield() }
                            let json = try await redis.send(
                                RedisCommand("HGET", .string("{arcade:duel}:player:\(name)"), "json"))
                            #expect(json.string?.contains("\"iq\":\(iq)") == true, "\(json)")
                            #expect(try await mailbox.count == 1)
                        }
                        group.cancelAll()
                    }
                }
            }
        }
    }
}
