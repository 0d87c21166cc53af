import Foundation
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("In several processes", .serialized)
    struct ProcessTests {
        private static let names = ["alice", "bob", "carol"]
        private static let devices = ["phone", "laptop"]

        @Test(
            "with random kills of senders, receivers and Redis and broken connections, every message arrives once and in order",
            arguments: [1, 4])
        func killed(partitions: Int) async throws {
            // scripts/stress sets a higher number.
            let kills =
                ProcessInfo.processInfo.environment["REDISDC_KILLS"].flatMap { Int($0) } ?? (partitions == 1 ? 30 : 15)
            var configuration = PostOfficeConfiguration()
            configuration.partitions = partitions
            configuration.takeOverAfter = .milliseconds(500)
            let seed = testSeed()
            var generator = SplitMix(seed: seed)
            try await withLocalRedis { notebook in
                try await withServer(.init(persistence: .appendOnly(fsync: .always))) { server, redis, _ in
                    try await withRedisClient(url: notebook.url) { notes in
                        var nextSeed = seed
                        let proxy = try await FaultProxy.start(to: .port(server.port))
                        let proxyURL = "redis://127.0.0.1:\(proxy.port)"
                        func startSender(_ number: Int) throws -> Child {
                            nextSeed += 1
                            // One of the two senders has an unreliable connection.
                            let url = number == 0 ? server.url : proxyURL
                            return try Child(
                                "redisdc-worker", ["mail-send", url, notebook.url, "\(partitions)", "\(nextSeed)"])
                        }
                        func startReceiver(_ number: Int) throws -> Child {
                            let (name, device) = (Self.names[number / 2], Self.devices[number % 2])
                            return try Child(
                                "redisdc-worker",
                                [
                                    "mail-receive", number < 3 ? server.url : proxyURL, notebook.url, "\(partitions)",
                                    name, device, number == 4 ? "1" : "10",
                                    number == 5 ? "without-wake-ups" : "with-wake-ups",
                                ])
                        }
                        try await withPostOffice(redis: redis, configuration: configuration) { office in
                            let homes = Set(try Self.names.map { try office.mailbox($0).partition.number })
                            #expect((homes.count > 1) == (partitions > 1))
                            // A device gets the messages that are sent after its first read.
                            for name in Self.names {
                                for device in Self.devices { _ = try await office.mailbox(name).look(device: device) }
                            }
                        }
                        var senders = try [startSender(0), startSender(1)]
                        var receivers = try (0..<6).map { try startReceiver($0) }
                        for kill in 0..<kills {
                            let before = try await Self.progress(notes)
                            try await until("fault \(kill): all processes make progress (seed \(seed))") {
                                try await Self.progress(notes) > before + 20
                            }
                            let fault = Int.random(in: 0..<18, using: &generator)
                            // A killed process is counted where it is killed.
                            if fault == 0 || fault >= 10 { tally(.fault) }
                            switch fault {
                            case 10: await proxy.cutAll(.reset)
                            case 11: await proxy.dropNextReply(matching: "EVALSHA")
                            case 12: _ = try await redis.send("CLIENT", "KILL", "TYPE", "pubsub")
                            case 13: _ = try await redis.send("SCRIPT", "FLUSH")
                            case 14: await proxy.cutNextReply(afterBytes: .random(in: 0...300, using: &generator))
                            case 15:
                                // Processes with reliable connections continue.
                                await proxy.swallowReplies()
                                let before = try await Self.progress(notes)
                                try await until("fault \(kill): the other processes make progress (seed \(seed))") {
                                    try await Self.progress(notes) > before + 20
                                }
                                await proxy.swallowReplies(false)
                            case 16:
                                await proxy.stall(.toClient)
                                let before = try await Self.progress(notes)
                                try await until("fault \(kill): the other processes make progress (seed \(seed))") {
                                    try await Self.progress(notes) > before + 20
                                }
                                await proxy.unstall(.toClient)
                            case 17:
                                try await server.pause()
                                try await Task.sleep(for: .milliseconds(Int.random(in: 1...200, using: &generator)))
                                try await server.resume()
                            case 0:
                                await server.kill()
                                try await server.restart()
                            case 1..<5:
                                let victim = Int.random(in: 0..<2, using: &generator)
                                try await senders[victim].kill9()
                                senders[victim] = try startSender(victim)
                            default:
                                let victim = Int.random(in: 0..<6, using: &generator)
                                try await receivers[victim].kill9()
                                receivers[victim] = try startReceiver(victim)
                            }
                        }
                        _ = try await notes.send("SET", "stop", "1")
                        for sender in senders { _ = try await sender.result() }
                        try await withPostOffice(redis: redis, configuration: configuration) { office in
                            let wanted = try await Self.finish(office, notes)
                            try await Self.check(office, notes, wanted, seed)
                        }
                        for receiver in receivers { try await receiver.kill9() }
                        await proxy.stop()
                    }
                }
            }
        }

        private static func progress(_ notes: RedisClient) async throws -> Int {
            try await notes.send("LLEN", "got alice phone").integer ?? 0
        }

        /// Repeats unconfirmed sends under their ids, after which each send has taken effect once.
        private static func finish(
            _ office: PostOffice, _ notes: RedisClient
        ) async throws -> [String: (count: Int, names: [String])] {
            let cells = try await notes.send("HGETALL", "wanted").array?.compactMap(\.string) ?? []
            let sent = Set(try await notes.send("HKEYS", "sent").array?.compactMap(\.string) ?? [])
            var wanted: [String: (count: Int, names: [String])] = [:]
            for index in stride(from: 0, to: cells.count, by: 2) {
                let words = cells[index + 1].split(separator: " ").map { String($0) }
                wanted[cells[index]] = (Int(words[0])!, Array(words.dropFirst()))
            }
            for (id, order) in wanted where !sent.contains(id) {
                try await office.send(
                    (0..<order.count).map { Message(text: paddedText("\(id) \($0)")) }, to: order.names, id: id)
            }
            return wanted
        }

        /// Checks what the receivers have noted against what the senders have noted.
        private static func check(
            _ office: PostOffice, _ notes: RedisClient, _ wanted: [String: (count: Int, names: [String])],
            _ seed: UInt64
        ) async throws {
            #expect(wanted.count > 20)
            for name in names {
                let last = try #require(try await office.mailbox(name).inspect()).last
                tally(.operation, last)
                tally(.promise, last * devices.count)
                let expected = wanted.filter { $0.value.names.contains(name) }
                #expect(last == expected.reduce(0) { $0 + $1.value.count }, "\(name), seed \(seed)")
                for device in devices {
                    let key = RedisArgument.string("got \(name) \(device)")
                    try await until("\(name)'s \(device) has \(last) (seed \(seed))") {
                        let line = try await notes.send("LINDEX", key, -1).string
                        return line?.hasPrefix("\(last) ") == true
                    }
                    let lines = try await notes.send("LRANGE", key, 0, -1).array?.compactMap(\.string) ?? []
                    // Removes duplicates, as a receiver does.
                    var seen: Set<Substring> = []
                    let once = lines.map { $0.split(separator: " ") }.filter { seen.insert($0[1]).inserted }
                    #expect(once.map { Int($0[0])! } == Array(1...last), "\(name)'s \(device), seed \(seed)")
                    // The messages of a send arrived completely and in order.
                    var next: [Substring: Int] = [:]
                    for words in once {
                        #expect(Int(words[3]) == next[words[2], default: 0], "\(words), seed \(seed)")
                        next[words[2], default: 0] += 1
                    }
                    #expect(
                        Dictionary(uniqueKeysWithValues: next.map { (String($0.key), $0.value) })
                            == expected.mapValues(\.count), "\(name)'s \(device), seed \(seed)")
                }
            }
            #expect(try await notes.send("LLEN", "gaps").integer == 0, "seed \(seed)")
        }
    }
}
