import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

/// The messages that handlers have received, in order.
private final class Log: Sendable {
    private let lines = Locked<[String]>([])

    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }

    func until(_ count: Int) async throws {
        try await TestSupport.until("\(count) lines instead of \(all)") { all.count >= count }
    }
}

private struct Oops: Error {}

private struct Position: Codable, Sendable {
    var lineNumber: Int
}

private struct Move: Codable, Sendable {
    var to: String
}

extension QueueListenTests {
    @Suite("Receiver", .serialized)
    struct ReceiverTests {
        private static func receiver(
            _ office: PostOffice, _ log: Log, store: (any CursorStore)? = nil, onFailure: FailurePolicy = .retry()
        ) throws -> Receiver {
            var receiver = Receiver(try office.mailbox("alice"), store: store, onFailure: onFailure) {
                log.add("\($0)")
            }
            receiver.handle(Move.self, type: "move") { move, _ in log.add("move \(move.to)") }
            receiver.handle(type: "chat") { message in log.add("chat \(message.text)") }
            receiver.handle(type: "bad") { message in
                log.add("bad")
                throw Oops()
            }
            return receiver
        }

        @Test("each message is passed to the handler for its type, in order, and acknowledged")
        func dispatch() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                let running = Task { try await Self.receiver(office, log).run() }
                try await office.send(
                    [try Message(json: Move(to: "e4"), type: "move"), Message(text: "hello", type: "chat")],
                    to: ["alice"])
                try await office.send(try Message(json: Move(to: "e5"), type: "move"), to: "alice")
                try await log.until(3)
                #expect(log.all == ["move e4", "chat hello", "move e5"])
                try await until("all messages are acknowledged") { try await office.mailbox("alice").count == 0 }
                running.cancel()
                #expect(await errorOf { try await running.value }?.code == .cancelled)
            }
        }

        @Test("a receiver decodes with the given decoder")
        func decoder() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                var receiver = Receiver(try office.mailbox("alice"), onFailure: .stop()) { _ in }
                receiver.handle([String: Int].self, type: "plain") { value, _ in log.add("\(value)") }
                receiver.handle(Position.self, type: "position", decoder: decoder) { position, _ in
                    log.add("\(position.lineNumber)")
                }
                try await office.send([Message(text: #"{"line_number":7}"#, type: "position")], to: ["alice"])
                try await office.send([Message(text: #"{"line_number":8}"#, type: "plain")], to: ["alice"])
                let running = Task { [receiver] in try await receiver.run() }
                try await log.until(2)
                #expect(log.all == ["7", #"["line_number": 8]"#])
                running.cancel()
            }
        }

        @Test("a message that is delivered again is handled once")
        func duplicates() async throws {
            try await withOffice { office, redis, _ in
                let log = Log()
                try await office.send(
                    [Message(text: "a", type: "chat"), Message(text: "b", type: "chat")], to: ["alice"])
                let running = Task { try await Self.receiver(office, log).run() }
                try await log.until(2)
                try await until("both are acknowledged") { try await office.mailbox("alice").count == 0 }
                _ = try await redis.send("FLUSHALL")
                try await office.send([Message(text: "c", type: "chat")], to: ["alice"])
                // Its sender sends a and b again before c.
                try await log.until(3)
                #expect(log.all == ["chat a", "chat b", "chat c"])
                running.cancel()
            }
        }

        @Test("the filter of duplicates remembers a number of ids, and never filters messages without an id")
        func filter() {
            var seen = SeenMessages(capacity: 2)
            for id in ["a", "b", "", "b", "c"] { seen.insert(id) }
            #expect(["a", "b", "c", ""].map { seen.contains($0) } == [false, true, true, false])
            // Two ids that Swift considers equal.
            seen.insert("o\u{308}")
            #expect(!seen.contains("\u{F6}"))
        }

        @Test("a handler that throws is called again with the message, and the next message waits")
        func retry() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                var receiver = try Self.receiver(
                    office, log, onFailure: .retry(pause: .milliseconds(1)...(.milliseconds(1))))
                receiver.handle(type: "shy") { _ in
                    log.add("shy")
                    if log.all.count < 3 { throw Oops() }
                }
                let running = Task { [receiver] in try await receiver.run() }
                try await office.send(
                    [Message(text: "", type: "shy"), Message(text: "x", type: "chat")], to: ["alice"])
                try await log.until(4)
                #expect(log.all == ["shy", "shy", "shy", "chat x"])
                running.cancel()
            }
        }

        @Test("a handler that keeps throwing stops the receiver, and the message is delivered again")
        func stop() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                try await office.send([Message(text: "", type: "bad")], to: ["alice"])
                let receiver = try Self.receiver(office, log, onFailure: .stop())
                await #expect(throws: Oops.self) { try await receiver.run() }
                await #expect(throws: Oops.self) { try await receiver.run() }
                #expect(log.all == ["bad", "bad"])
            }
        }

        @Test("a message that cannot be handled is sent to the dead-letter mailbox once, and the next one follows")
        func deadLetter() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                let store = HoldingStore()
                try await office.send(
                    [Message(text: "x", type: "bad", headers: ["a": "b"]), Message(text: "y", type: "chat")],
                    to: ["alice"])
                let policy = FailurePolicy.deadLetter(
                    to: "dead", afterAttempts: 2, pause: .milliseconds(1)...(.milliseconds(1)))
                // The first run fails after sending the dead letter, before it saves the cursor.
                await #expect(throws: Oops.self) {
                    try await Self.receiver(office, log, store: store, onFailure: policy).run()
                }
                store.isOpen.withLock { $0 = true }
                let running = Task { try await Self.receiver(office, log, store: store, onFailure: policy).run() }
                try await log.until(5)
                #expect(log.all == ["bad", "bad", "bad", "bad", "chat y"])
                let dead = try await office.mailbox("dead").peek()
                #expect(dead.count == 1)
                #expect(dead.first?.text == "x" && dead.first?.type == "bad")
                #expect(dead.first?.headers["a"] == "b" && dead.first?.headers["dead-letter-mailbox"] == "alice")
                #expect(dead.first?.headers["dead-letter-reason"]?.contains("Oops") == true)
                running.cancel()
            }
        }

        /// A store that throws until it is opened.
        private final class HoldingStore: CursorStore {
            let isOpen = Locked(false)
            private let cursor = Locked<Cursor?>(nil)

            func load() async throws -> Cursor? { cursor.withLock { $0 } }
            func save(_ cursor: Cursor) async throws {
                guard isOpen.withLock({ $0 }) else { throw Oops() }
                self.cursor.withLock { $0 = cursor }
            }
        }

        @Test("a type without a handler is never tried again: the run ends, or the message is dead-lettered")
        func unknownType() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                try await office.send("x", to: "alice")
                let retrying = try Self.receiver(office, log, onFailure: .retry())
                let error = await errorOf { try await retrying.run() }
                #expect(error?.code == .undecodable && error?.message.contains("handleOthers") == true)
                #expect(try await office.mailbox("alice").peek().count == 1)
                let deadLettering = try Self.receiver(
                    office, log, onFailure: .deadLetter(to: "dead", pause: .seconds(3600)...(.seconds(3600))))
                let running = Task { try await deadLettering.run() }
                try await until("it is dead-lettered") { try await office.mailbox("dead").peek().count == 1 }
                running.cancel()
                _ = await running.result
            }
        }

        @Test("a type without a handler is a failure, unless there is a handler for all others")
        func others() async throws {
            try await withOffice { office, _, _ in
                let log = Log()
                try await office.send("x", to: "alice")
                var receiver = try Self.receiver(office, log, onFailure: .stop())
                #expect(await errorOf { try await receiver.run() }?.code == .undecodable)
                receiver.handleOthers { log.add("other \($0.text)") }
                let running = Task { [receiver] in try await receiver.run() }
                try await log.until(1)
                #expect(log.all == ["other x"])
                running.cancel()
            }
        }

        @Test("a receiver continues at the cursor that a file or Redis has stored", arguments: [true, false])
        func stores(_ isFile: Bool) async throws {
            try await withOffice { office, redis, server in
                let log = Log()
                let store: any CursorStore =
                    isFile
                    ? FileCursorStore(path: server.directory + "/cursor")
                    : RedisCursorStore(redis: redis, key: "cursor")
                #expect(try await store.load() == nil)
                try await office.send(
                    [Message(text: "a", type: "chat"), Message(text: "b", type: "chat")], to: ["alice"])
                let first = Task { try await Self.receiver(office, log, store: store).run() }
                try await log.until(2)
                try await until("the cursor is saved") { try await store.load()?.index == 2 }
                first.cancel()
                _ = await first.result
                try await office.send([Message(text: "c", type: "chat")], to: ["alice"])
                let second = Task { try await Self.receiver(office, log, store: store).run() }
                try await log.until(3)
                #expect(log.all == ["chat a", "chat b", "chat c"])
                second.cancel()
                _ = await second.result
                // Other data is reported and not overwritten.
                if isFile {
                    try "x".write(toFile: server.directory + "/cursor", atomically: true, encoding: .utf8)
                } else {
                    _ = try await redis.send("SET", "cursor", "x")
                }
                #expect(await errorOf { _ = try await store.load() }?.code == .undecodable)
            }
        }

        @Test("a loop acknowledges the messages that it has finished with, and not the current one")
        func sequence() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send((0..<5).map { Message(text: "\($0)") }, to: ["alice"])
                var texts: [String] = []
                for try await event in mailbox.messages(limit: 2) {
                    guard case .message(let message) = event else { continue }
                    texts.append(message.text)
                    if message.text == "3" { break }
                }
                #expect(texts == ["0", "1", "2", "3"])
                // The page with 2 and 3 was not finished.
                #expect(try await mailbox.look().messages.map(\.text) == ["2", "3", "4"])
            }
        }

        @Test("a sequence reports gaps and continues, and ends when a newer reader begins")
        func gaps() async throws {
            // Its sender sends nothing again, so the reader is notified.
            try await withOffice(configure: { $0.repairTime = .zero }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                let log = Log()
                let reading = Task {
                    for try await event in mailbox.messages() {
                        switch event {
                        case .message(let message): log.add(message.text)
                        case .gap(let gap): log.add("\(gap)")
                        }
                    }
                }
                try await office.send("a", to: "alice")
                try await log.until(1)
                try await office.untilWaiting(1, at: "alice")
                _ = try await redis.send("FLUSHALL")
                try await office.send("b", to: "alice")
                try await log.until(3)
                #expect(log.all == ["a", "reset", "b"])
                try await office.untilWaiting(1, at: "alice")
                _ = try await mailbox.look()
                #expect(await errorOf { try await reading.value }?.code == .superseded)
            }
        }
    }
}
