import Foundation
import Hiredis
import NIOConcurrencyHelpers
import QueueListen
import RedisDCTesting

/// The memory of a server for each idle stream.
enum Idle {
    static func measure(_ redis: LocalRedis, streams: Int) async throws -> [Figure] {
        let empty = try await bytes(try ServerProcess(nil), streams) { connection, _ in
            try await connection.write("GET /idle HTTP/1.1\r\nHost: empty\r\n\r\n")
            _ = try await connection.read(to: "retry: 2000\n\n")
        }
        let plain = try await bytes(try ServerProcess(nil), streams) { connection, _ in
            try await connection.write("GET /plain HTTP/1.1\r\nHost: empty\r\n\r\n")
            _ = try await connection.read(to: "retry: 2000\n\n")
        }
        let events = try await bytes(try ServerProcess(redis.url), streams) { connection, number in
            let client = try await Client("events\(number)", &connection)
            try await connection.write(client.request("GET", "/v1/events"))
            _ = try await connection.read(to: "retry: 2000\n\n")
        }
        let sockets = try await bytes(try ServerProcess(redis.url), streams) { connection, number in
            let port = connection.port
            let client = try await Connection.with(port: port) { try await Client("socket\(number)", &$0) }
            try await connection.write(
                "GET /v1/socket HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                    + "Sec-WebSocket-Protocol: ql.v1\r\n\r\n")
            _ = try await connection.read(to: "\r\n\r\n")
            try await connection.write(client.authentication("/v1/socket"))
            _ = try await connection.read(to: "\"expires\":")
        }
        return [
            Figure(name: "\(streams) idle streams of an empty server, each", value: empty / 1024, unit: "KiB"),
            Figure(
                name: "\(streams) idle streams that do not notice their end, each", value: plain / 1024, unit: "KiB"),
            Figure(name: "\(streams) idle event streams, each", value: events / 1024, unit: "KiB"),
            Figure(name: "idle event stream / empty server", value: events / empty, unit: "×"),
            Figure(name: "\(streams) idle sockets, each", value: sockets / 1024, unit: "KiB"),
            Figure(name: "idle socket / empty server", value: sockets / empty, unit: "×"),
        ]
    }

    /// Opens streams, and returns by how much the server's memory has grown for each.
    private static func bytes(
        _ server: ServerProcess, _ streams: Int,
        _ open: @escaping @Sendable (inout Connection, Int) async throws -> Void
    ) async throws -> Double {
        let opened = NIOLockedValueBox(0)
        let (ends, _) = AsyncStream<Void>.makeStream()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            // The first streams pay for what all share.
            let warm = min(200, streams / 2)
            var before = 0.0
            for number in 0..<streams {
                group.addTask {
                    try await Connection.with(port: server.port) { connection in
                        try await open(&connection, number)
                        opened.withLockedValue { $0 += 1 }
                        for await _ in ends {}
                    }
                }
                if number == warm {
                    try await wait { opened.withLockedValue { $0 } == warm + 1 }
                    before = try server.memory()
                }
                // A limited number are opened at the same time.
                try await wait { number - opened.withLockedValue { $0 } < 64 }
            }
            try await wait { opened.withLockedValue { $0 } == streams }
            return (try server.memory() - before) / Double(streams - warm - 1)
        }
    }

    static func wait(_ condition: () -> Bool) async throws {
        while !condition() { try await Task.sleep(for: .milliseconds(2)) }
    }
}

/// The time from a send to its receipt, by an event stream, by a long poll that waits, and by a reader in process.
enum Latency {
    static func measure(_ redis: LocalRedis) async throws -> [Figure] {
        let server = try ServerProcess(redis.url)
        let posts = try await posts(server)
        let figures = [("p50", 0.5), ("p99", 0.99)].map { name, share in
            Figure(
                name: "signed POST to receipt by an event stream, \(name)", value: posts.percentile(share), unit: "µs")
        }
        return try await inProcess(redis, server) + figures + [try await poll(redis, server)]
    }

    /// The time until a poll that waits has its reply. The next poll begins afterwards: its request is not in the time.
    private static func poll(_ redis: LocalRedis, _ server: ServerProcess) async throws -> Figure {
        try await withRedisClient(url: redis.url) { client in
            try await withPostOffice(redis: client) { office in
                try await Connection.with(port: server.port) { connection in
                    let dora = try await Client("dora", &connection)
                    var (cursor, times): (String, [Double]) = (dora.cursor, [])
                    for number in 0..<1100 {
                        let mailbox = try office.mailbox("dora")
                        let seen = try await mailbox.devices().first?.lastSeen
                        try await connection.write(dora.request("GET", "/v1/mail?after=\(cursor)&wait=30"))
                        // The begin of a poll changes it.
                        while try await mailbox.devices().first?.lastSeen == seen {}
                        let start = ContinuousClock.now
                        try await office.send("hello", to: "dora")
                        let reply = try await connection.call("")
                        if number >= 100 { times.append((.now - start) / .microseconds(1)) }
                        let fields = reply.body.components(separatedBy: "\"cursor\":\"")
                        cursor = String(fields[fields.count - 1].prefix { $0 != "\"" })
                        try await mailbox.acknowledge(Cursor(cursor) ?? .none, device: "bench")
                    }
                    return Figure(
                        name: "send to receipt by a poll that waits, p50", value: times.percentile(0.5), unit: "µs")
                }
            }
        }
    }

    private static func posts(_ server: ServerProcess) async throws -> [Double] {
        try await Connection.with(port: server.port) { sender in
            let bob = try await Client("bob", &sender)
            return try await Connection.with(port: server.port) { connection in
                let carol = try await Client("carol", &connection)
                try await connection.write(carol.request("GET", "/v1/events"))
                _ = try await connection.read(to: "retry: 2000\n\n")
                return try await times(sender: &sender, receiver: &connection) { number in
                    bob.request(
                        "POST", "/v1/send",
                        body: #"{"to":["carol"],"id":"\#(number)","messages":[{"text":"hello"}]}"#)
                }
            }
        }
    }

    /// The time in microseconds from each of 1,000 requests until an event has come.
    private static func times(
        sender: inout Connection, receiver: inout Connection, _ request: (Int) -> String
    ) async throws -> [Double] {
        var times: [Double] = []
        for number in 0..<1100 {
            let text = request(number)
            let start = ContinuousClock.now
            try await sender.write(text)
            _ = try await receiver.read(to: "\n\n")
            if number >= 100 { times.append((.now - start) / .microseconds(1)) }
            // The reply, so that one request is under way at a time.
            _ = try await sender.call("")
        }
        return times
    }

    private static func inProcess(_ redis: LocalRedis, _ server: ServerProcess) async throws -> [Figure] {
        try await withRedisClient(url: redis.url) { client in
            try await withPostOffice(redis: client) { sender in
                // A client of its own, as the gateway has.
                try await withRedisClient(url: redis.url) { other in
                    try await withPostOffice(redis: other) { office in
                        try await Connection.with(port: server.port) { connection in
                            let alice = try await Client("alice", &connection)
                            try await connection.write(alice.request("GET", "/v1/events"))
                            _ = try await connection.read(to: "retry: 2000\n\n")
                            let reader = try office.mailbox("bob").reader(device: "bench")
                            var cursor = try await reader.listen(timeout: .zero).cursor
                            var (events, inProcess): ([Double], [Double]) = ([], [])
                            // By turns, so that both see the same machine.
                            for number in 0..<1100 {
                                var start = ContinuousClock.now
                                let position = cursor
                                async let delivery = reader.listen(after: position)
                                try await sender.send("hello", to: "bob")
                                cursor = try await delivery.cursor
                                if number >= 100 { inProcess.append((.now - start) / .microseconds(1)) }
                                start = .now
                                try await sender.send("hello", to: "alice")
                                _ = try await connection.read(to: "\n\n")
                                if number >= 100 { events.append((.now - start) / .microseconds(1)) }
                            }
                            return [0.5, 0.99].flatMap { share in
                                let (a, b) = (inProcess.percentile(share), events.percentile(share))
                                let name = share == 0.5 ? "p50" : "p99"
                                return [
                                    Figure(name: "send to receipt in process, \(name)", value: a, unit: "µs"),
                                    Figure(name: "send to receipt by an event stream, \(name)", value: b, unit: "µs"),
                                    Figure(name: "event stream / in process, \(name)", value: b / a, unit: "×"),
                                ]
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Requests in a second, by 32 connections with one request each at a time.
enum Rate {
    static func measure(_ redis: LocalRedis) async throws -> [Figure] {
        let (empty, gateway) = (try ServerProcess(nil), try ServerProcess(redis.url))
        let plain = try await rate(empty.port) { _ in "GET /empty HTTP/1.1\r\nHost: empty\r\n\r\n" }
        let poll = try await rate(gateway.port) { $0.request("GET", "/v1/mail?wait=0") }
        let signed = try await rate(gateway.port) { client in
            client.request("POST", "/v1/ack", body: "{\"cursor\":\"\(client.cursor)\"}")
        }
        return [
            Figure(name: "requests of an empty route", value: plain, unit: "/s"),
            Figure(name: "polls", value: poll, unit: "/s"),
            Figure(name: "polls / empty route", value: poll / plain, unit: "×"),
            Figure(name: "signed acknowledgements", value: signed, unit: "/s"),
            Figure(name: "signed acknowledgements / empty route", value: signed / plain, unit: "×"),
        ]
    }

    private static func rate(_ port: Int, _ request: @escaping @Sendable (Client) -> String) async throws -> Double {
        let (count, isCounting) = (NIOLockedValueBox(0), NIOLockedValueBox(false))
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            for number in 0..<32 {
                group.addTask {
                    try await Connection.with(port: port) { connection in
                        let client = try? await Client("rate\(number)", &connection)
                        while !Task.isCancelled {
                            let text = client.map(request) ?? "GET /empty HTTP/1.1\r\nHost: empty\r\n\r\n"
                            _ = try await connection.call(text)
                            if isCounting.withLockedValue({ $0 }) { count.withLockedValue { $0 += 1 } }
                        }
                    }
                }
            }
            try await Task.sleep(for: .seconds(1))
            isCounting.withLockedValue { $0 = true }
            let start = ContinuousClock.now
            try await Task.sleep(for: .seconds(3))
            isCounting.withLockedValue { $0 = false }
            return Double(count.withLockedValue { $0 }) / ((.now - start) / .seconds(1))
        }
    }
}

/// The time from the death of a node until its client has received, at another node, what was sent meanwhile.
enum Resume {
    static func measure(_ redis: LocalRedis) async throws -> [Figure] {
        var times: [Double] = []
        let second = try ServerProcess(redis.url)
        try await withRedisClient(url: redis.url) { client in
            try await withPostOffice(redis: client) { office in
                for number in 0..<10 {
                    let first = try ServerProcess(redis.url)
                    let (alice, start) = try await Connection.with(port: first.port) { connection in
                        let alice = try await Client("resume\(number)", &connection)
                        try await connection.write(alice.request("GET", "/v1/events"))
                        _ = try await connection.read(to: "retry: 2000\n\n")
                        try await office.send("1", to: alice.user)
                        _ = try await connection.read(to: "\n\n")
                        let start = ContinuousClock.now
                        first.kill()
                        try await office.send("2", to: alice.user)
                        // Until the connection ends.
                        _ = try? await connection.read(to: "never")
                        return (alice, start)
                    }
                    try await Connection.with(port: second.port) { connection in
                        try await connection.write(alice.request("GET", "/v1/events"))
                        _ = try await connection.read(to: "\"text\":\"2\"")
                    }
                    times.append((.now - start) / .milliseconds(1))
                }
            }
        }
        return [
            Figure(name: "death of a node to receipt at another, median", value: times.percentile(0.5), unit: "ms"),
            Figure(name: "death of a node to receipt at another, greatest", value: times.max() ?? 0, unit: "ms"),
        ]
    }
}
