import Foundation
import Hiredis
import QueueListen
import TestRandom

/// Senders and receivers that can be killed at any time, and that record confirmed results in a
/// second Redis server.
struct MailMix {
    let office: PostOffice
    /// A client of the second server, which suffers no faults.
    let notes: RedisClient

    static let names = ["alice", "bob", "carol"]

    /// Sends numbered messages to random mailboxes until the key `stop` exists.
    ///
    /// Each send has its own ID. The intended recipients are recorded before the send, the
    /// confirmation after it.
    func send(seed: UInt64) async throws {
        printSeed(seed, of: "MailMix")
        var generator = SplitMix(seed: seed)
        var number = 0
        while try await notes.send("EXISTS", "stop").integer == 0 {
            number += 1
            let id = "\(seed)-\(number)"
            let names = Self.names.filter { _ in Bool.random(using: &generator) }
            let count = Int.random(in: 1...3, using: &generator)
            if names.isEmpty { continue }
            _ = try await notes.send("HSET", "wanted", .string(id), .string("\(count) " + names.joined(separator: " ")))
            do {
                try await office.send(Self.messages(id, count), to: names, id: id)
                _ = try await notes.send("HSET", "sent", .string(id), "1")
            } catch let error as QueueListenError where error.mayHaveRun || error.code == .notConnected {}
        }
    }

    static func messages(_ id: String, _ count: Int) -> [Message] {
        (0..<count).map { Message(text: paddedText("\(id) \($0)")) }
    }

    /// Receives messages and records each of them.
    func receive(_ name: String, device: String, limit: Int) async throws {
        for try await event in try office.mailbox(name).messages(device: device, limit: limit) {
            switch event {
            case .message(let message):
                let words = [message.id] + message.text.split(separator: " ").prefix(2).map { String($0) }
                _ = try await notes.send(
                    "RPUSH", .string("got \(name) \(device)"),
                    .string("\(message.index) " + words.joined(separator: " ")))
            case .gap(let gap): _ = try await notes.send("RPUSH", "gaps", .string("\(name) \(device) \(gap)"))
            }
        }
    }
}
