// Messages that Redis has confirmed and lost, and that their sender sends again.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test("after FLUSHALL the first send is preceded by what is lost, and a reader that has received it goes on")
    func sentAgainAfterFlush() async throws {
        try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
            let mailbox = try office.mailbox("alice")
            try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
            let cursor = try await mailbox.look().cursor
            let waiting = Task { try await mailbox.listen(after: cursor) }
            try await office.untilWaiting(1, at: "alice")
            _ = try await redis.send("FLUSHALL")
            try await office.send("c", to: "alice")
            var delivery = try await waiting.value
            while delivery.messages.isEmpty, !delivery.status.isLoss {
                delivery = try await mailbox.listen(after: delivery.cursor)
            }
            #expect(delivery.word == "c")
            // It comes after both, in the epoch of before.
            #expect(delivery.cursor.index == 3)
            #expect(delivery.cursor.epoch == cursor.epoch)
        }
    }

    @Test(
        "if the last second of the append-only file is lost, its sender sends again what it had, and no reader misses anything"
    )
    func lostSecond() async throws {
        for rewritten in [0, 2] {
            try await withServer(.init(persistence: .appendOnly(fsync: .everySecond))) { server, redis, other in
                try await withPostOffice(redis: redis) { sender in
                    let stranger = try PostOffice(redis: other)
                    try await sender.send("kept", to: "alice", "bob")
                    let kept = try await sender.mailbox("bob").look().cursor
                    try await Self.untilWritten(other)
                    let file = try #require(Self.appendOnlyFile(of: server))
                    let size = try Self.size(of: file)
                    try await sender.send([Message(text: "lost"), Message(text: "lost too")], to: ["alice", "bob"])
                    let seen = try await sender.mailbox("alice").look(device: "phone").cursor
                    #expect(seen.index == 3)
                    let waiting = Task { try await sender.mailbox("alice").listen(after: seen, device: "phone") }
                    try await sender.untilWaiting(1, at: "alice")
                    try await Self.untilWritten(other)
                    #expect(try Self.size(of: file) > size)
                    await server.kill()
                    let handle = try FileHandle(forWritingTo: file)
                    try handle.truncate(atOffset: UInt64(size))
                    try handle.close()
                    try await server.restart()
                    // Without another send.
                    try await until("the lost messages are sent again") {
                        let texts = try await stranger.mailbox("bob").peek().map(\.text)
                        return texts.suffix(2) == ["lost", "lost too"]
                    }
                    for number in 0..<rewritten { try await stranger.send("new \(number)", to: "bob") }
                    // Bob has not read the lost messages.
                    try await sender.send("b", to: "alice", "bob")
                    let rest = try await stranger.mailbox("bob").look(after: kept).messages.map(\.text)
                    #expect(
                        rest.filter { !$0.hasPrefix("new") } == ["lost", "lost too", "b"], "with \(rewritten) written")
                    #expect(rest.filter { $0.hasPrefix("new") } == (0..<rewritten).map { "new \($0)" })
                    // Alice has read them.
                    var delivery = try await waiting.value
                    while delivery.messages.isEmpty, !delivery.status.isLoss {
                        delivery = try await sender.mailbox("alice").listen(after: delivery.cursor, device: "phone")
                    }
                    #expect(delivery.word == "b", "with \(rewritten) written")
                }
            }
        }
    }

    /// Waits until Redis has written its buffer to the file. The data need not be on the disk.
    private static func untilWritten(_ redis: RedisClient) async throws {
        try await until("the buffer is written") {
            try await redis.send("INFO", "persistence").string?.contains("aof_buffer_length:0\r\n") == true
        }
    }

    /// The file to which the server appends at present.
    private static func appendOnlyFile(of server: LocalRedis) -> URL? {
        let files = FileManager.default.enumerator(
            at: URL(fileURLWithPath: server.directory), includingPropertiesForKeys: nil)
        let all = (files?.allObjects as? [URL] ?? []).filter { $0.pathExtension == "aof" }
        return all.first { $0.lastPathComponent.contains("incr") } ?? all.first
    }

    private static func size(of file: URL) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int ?? 0
    }
}
