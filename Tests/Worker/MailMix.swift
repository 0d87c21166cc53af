import Foundation
import Hiredis
import QueueListen
import TestRandom

/// Senders and receivers that can be killed at any moment, and note in a second Redis what they
/// know for certain.
struct MailMix {
    let office: PostOffice
    /// The second Redis, which is not disturbed.
    let notes: RedisClient

    static let names = ["alice", "bob", "carol"]

    /// Sends numbered messages to random recipients, each send under an id of its own. Notes each
    /// send before it, and its receipt after it.
    func send(seed: UInt64) async throws {
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

    /// Notes each message and each gap.
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
