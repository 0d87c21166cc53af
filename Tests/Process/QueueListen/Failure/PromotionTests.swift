// Mailboxes, while replicas are promoted that lack the last writes.
import Foundation
import Hiredis
import RedisDCTesting
import Synchronization
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

/// The number of promotions: scripts/stress sets a larger one.
private let promotions = ProcessInfo.processInfo.environment["REDISDC_PROMOTIONS"].flatMap { Int($0) } ?? 6

extension QueueListenTests.FailureTests {
    @Test("after a promotion each reader receives all confirmed messages once, and no gap", .timeLimit(.minutes(60)))
    func promotionsOfMailboxes() async throws {
        let first = testSeed()
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.url) { one in
                try await withRedisClient(url: servers.url) { two in
                    for round in 0..<promotions {
                        try await MailPromotion(servers: servers, seed: first + UInt64(round)).run(one, two)
                        try await servers.rejoin()
                    }
                }
            }
        }
    }
}

/// Two senders and four readers in two processes, and one promotion.
private struct MailPromotion {
    static let names = ["alice", "bob"]
    static let devices = ["phone", "laptop"]

    let servers: ReplicatedServers
    let seed: UInt64
    private let sent = Sent()

    init(servers: ReplicatedServers, seed: UInt64) { (self.servers, self.seed) = (servers, seed) }

    func run(_ one: RedisClient, _ two: RedisClient) async throws {
        var configuration = PostOfficeConfiguration()
        configuration.partitions = seed % 2 == 0 ? 1 : 4
        configuration.recheckInterval = .seconds(2)
        let namespace = "promotion-\(seed)"
        try await withPostOffice(redis: one, namespace: namespace, configuration: configuration) { sending in
            try await withPostOffice(redis: two, namespace: namespace, configuration: configuration) { receiving in
                // A device gets the messages that are sent after its first read.
                for name in Self.names {
                    for device in Self.devices { _ = try await receiving.mailbox(name).look(device: device) }
                }
                let readers = Self.names.flatMap { name in Self.devices.map { Reader(name: name, device: $0) } }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for reader in readers { group.addTask { try await reader.read(receiving) } }
                    let senders = (0..<2).map { number in Task { try await send(number, sending) } }
                    try await promote()
                    sent.stop()
                    for sender in senders { try await sender.value }
                    // The last message of each mailbox, from the process that sent the others.
                    try await until("the last messages are sent, seed \(seed)") {
                        (try? await sending.send([Message(text: "last")], to: Self.names, id: "last-\(seed)")) != nil
                    }
                    try await until("each reader has the last one, seed \(seed)") { readers.allSatisfy(\.isDone) }
                    group.cancelAll()
                    while let result = await group.nextResult() {
                        if case .failure(let error) = result, !(error is CancellationError) {
                            #expect((error as? QueueListenError)?.code == .cancelled, "\(error), seed \(seed)")
                        }
                    }
                }
                for reader in readers { judge(reader) }
            }
        }
    }

    /// Sends numbered messages, each under its id, and repeats a send whose result is not known.
    private func send(_ sender: Int, _ office: PostOffice) async throws {
        var generator = SplitMix(seed: seed &* 10 &+ UInt64(sender))
        for number in 1... {
            if sent.isStopped { return }
            let names = Self.names.filter { _ in Int.random(in: 0..<3, using: &generator) > 0 }
            if names.isEmpty { continue }
            let text = "\(sender) \(number)"
            while true {
                do throws(QueueListenError) {
                    try await office.send([Message(text: text)], to: names, id: "\(seed)-\(sender)-\(number)")
                    break
                } catch {
                    guard error.mayHaveRun || error.code == .notConnected else { throw error }
                }
            }
            for name in names { sent.confirmed(text, to: name) }
            tally(.operation)
        }
    }

    /// Promotes the replica after some messages that it lacks.
    private func promote() async throws {
        var generator = SplitMix(seed: seed)
        let before = Int.random(in: 10...100, using: &generator)
        try await until("messages are sent, seed \(seed)") { sent.count > before }
        try await servers.cutReplication()
        let wanted = sent.count + Int.random(in: 0...100, using: &generator)
        try await until("the tail has messages, seed \(seed)") { sent.count >= wanted }
        await servers.promote()
        let after = sent.count + 50
        try await until("the new server has messages, seed \(seed)") { sent.count >= after }
    }

    /// Checks that a reader has received all messages once, each sender's in order: the senders live, and send again what
    /// is lost.
    private func judge(_ reader: Reader) {
        let reason: Comment = "\(reader.name)'s \(reader.device), seed \(seed)"
        let events = reader.events
        var received: Set<String> = []
        var last: [Substring: Int] = [:]
        #expect(!events.contains(nil), "a gap is reported, \(reason)")
        for text in events.compactMap(\.self) {
            #expect(received.insert(text).inserted, "\(text) comes twice, \(reason)")
            let words = text.split(separator: " ")
            guard words.count == 2, let number = Int(words[1]) else { continue }
            #expect(number > last[words[0], default: 0], "\(text) after \(last), \(reason)")
            last[words[0]] = number
        }
        let missing = sent.confirmed(to: reader.name).subtracting(received)
        #expect(missing.isEmpty, "\(missing.sorted().prefix(5)) are lost, \(reason)")
        let unknown = received.subtracting(sent.all).subtracting(["last"])
        #expect(unknown.isEmpty, "\(unknown) were never sent, \(reason)")
        tally(.promise, events.count)
    }
}

/// The confirmed messages.
private final class Sent: Sendable {
    private struct State {
        var isStopped = false
        var texts: [String: Set<String>] = [:]
        var count = 0
    }
    private let state = Mutex(State())

    var isStopped: Bool { state.withLock { $0.isStopped } }
    var count: Int { state.withLock { $0.count } }
    var all: Set<String> { state.withLock { $0.texts.values.reduce(into: []) { $0.formUnion($1) } } }

    func stop() { state.withLock { $0.isStopped = true } }
    func confirmed(to name: String) -> Set<String> { state.withLock { $0.texts[name, default: []] } }

    func confirmed(_ text: String, to name: String) {
        state.withLock {
            $0.texts[name, default: []].insert(text)
            $0.count += 1
        }
    }
}

/// Reads a mailbox until the last message, and records its events.
private final class Reader: Sendable {
    let name: String
    let device: String
    /// The texts of the messages; `nil` for a gap.
    private let log = Mutex<[String?]>([])
    private let hasEnded = Mutex(false)

    init(name: String, device: String) { (self.name, self.device) = (name, device) }

    var events: [String?] { log.withLock { $0 } }
    /// Whether it has the last message, or has ended and will never have it.
    var isDone: Bool { hasEnded.withLock { $0 } || log.withLock { $0.contains("last") } }

    func read(_ office: PostOffice) async throws {
        defer { hasEnded.withLock { $0 = true } }
        for try await event in try office.mailbox(name).messages(device: device) {
            switch event {
            case .message(let message): log.withLock { $0.append(message.text) }
            case .gap: log.withLock { $0.append(nil) }
            }
        }
    }
}
