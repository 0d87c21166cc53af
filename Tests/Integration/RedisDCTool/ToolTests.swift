import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

/// The tool as a process: its output and its exit status.
@Suite("The redisdc tool", .serialized)
struct ToolTests {
    @Test("classic create, signal, value, wait and destroy work, as text and as JSON")
    func classic() async throws {
        try await withLocalRedis { server in
            let url = server.url
            let create = try await redisdc("classic", "create", "s", "--permits", "2", url: url)
            #expect(create.status == 0)
            #expect(try await redisdc("classic", "signal", "s", "-n", "3", url: url).status == 0)
            #expect(try await redisdc("classic", "value", "s", url: url).output == "5")
            #expect(try await redisdc("classic", "value", "s", "--json", url: url).output == #"{"name":"s","value":5}"#)
            #expect(try await redisdc("classic", "wait", "s", url: url).status == 0)
            #expect(try await redisdc("classic", "wait", "s", "--timeout", "0", url: url).status == 0)
            #expect(try await redisdc("--json", "classic", "value", "s", url: url).output == #"{"name":"s","value":3}"#)
            #expect(try await redisdc("classic", "destroy", "s", url: url).status == 0)
        }
    }

    @Test("a failure has its exit status and one line on standard error")
    func statuses() async throws {
        try await withLocalRedis(.init(aclUsers: ["nobody on >pw ~* &* +@all -@list"])) { server in
            let url = server.url
            _ = try await redisdc("classic", "create", "s", "--permits", "0", url: url)
            let usage = try await redisdc("classic", "wait", "s", "--timeout", "-1", url: url)
            #expect(usage.status == 64)
            #expect(try await redisdc("nosuch", url: url).status == 64)
            let name = try await redisdc("classic", "value", "a{b", url: url)
            #expect(name.status == 65)
            #expect(name.error.split(separator: "\n").count == 1 && name.output.isEmpty)
            let conflict = try await redisdc("classic", "create", "s", "--permits", "1", url: url)
            #expect(conflict.status == 65)
            #expect(conflict.error.contains("0 permits"))
            let unreachable = try await redisdc("classic", "value", "s", "--redis", "redis://127.0.0.1:1", url: url)
            #expect(unreachable.status == 69)
            #expect(unreachable.error.contains("127.0.0.1:1"))
            #expect(try await redisdc("classic", "wait", "s", "--timeout", "0", url: url).status == 75)
            #expect(try await redisdc("classic", "wait", "s", "--timeout", "0.05", url: url).status == 75)
            let denied = url.replacing("redis://", with: "redis://nobody:pw@")
            let notPermitted = try await redisdc("classic", "value", "s", url: denied)
            #expect(notPermitted.status == 77)
            #expect(
                try await redisdc("classic", "value", "s", url: url.replacing("//", with: "//nobody:wrong@")).status
                    == 77)
        }
    }

    #if TLSSupport
        @Test("TLS to a server without it fails with the advice to use redis://")
        func tlsToPlainPort() async throws {
            try await withLocalRedis { server in
                let url = server.url.replacing("redis://", with: "rediss://")
                let end = try await redisdc("classic", "value", "s", url: url)
                #expect(end.status == 69)
                #expect(end.error.hasSuffix("if the server does not use TLS, use redis:// instead of rediss://"))
            }
        }
    #endif

    @Test(
        "Ctrl-C during a classic wait exits with 130 and consumes nothing, also when a signal arrives at the same time")
    func interrupt() async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.unixURL) { redis in
                for round in 0..<20 {
                    let wait = try Child(
                        "redisdc", ["classic", "wait", "s\(round)"], environment: ["REDIS_URL": server.url])
                    try await until("it waits") {
                        try await redis.send("INFO", "clients").string?.contains("blocked_clients:1") == true
                    }
                    let signals = round % 2
                    if signals == 1 { _ = try await redis.send("LPUSH", "rdc:sem:s\(round)", "1") }
                    wait.interrupt()
                    let end = try await wait.end()
                    #expect(end.status == 130 || end.status == 0, "\(end.error)")
                    let left = try await redis.send("LLEN", "rdc:sem:s\(round)").integer
                    #expect(left == signals - (end.status == 0 ? 1 : 0))
                }
            }
        }
    }

    @Test("publish prints the number of receivers, and subscribe prints the messages")
    func pubSub() async throws {
        try await withLocalRedis { server in
            #expect(try await redisdc("publish", "news", "hello", url: server.url).output == "0")
            let listener = try Child(
                "redisdc", ["subscribe", "news", "--json"], environment: ["REDIS_URL": server.url])
            try await until("it listens") {
                try await redisdc("publish", "news", "hello", url: server.url).output == "1"
            }
            let patterns = try Child(
                "redisdc", ["subscribe", "--pattern", "n*"], environment: ["REDIS_URL": server.url])
            try await until("both listen") {
                try await redisdc("publish", "news", "again", url: server.url).output == "2"
            }
            listener.interrupt()
            patterns.interrupt()
            let lines = try await listener.end().output.split(separator: "\n")
            #expect(lines.first == #"{"subscribed":["news"]}"#)
            #expect(lines.contains(#"{"channel":"news","message":"hello"}"#))
            #expect(try await patterns.end().output.contains("news: again"))
        }
    }

    @Test("doctor reports a missing right with advice, and fails")
    func doctor() async throws {
        let rules = [
            "few on >pw ~rdc:* resetchannels &rdc:* +@all -@admin -@dangerous -client -info",
            "none on >pw ~other:* resetchannels &other:* +@all", "lists on >pw ~rdc:* resetchannels &rdc:* +@all -zadd",
        ]
        try await withLocalRedis(.init(aclUsers: rules)) { server in
            let all = try await redisdc("doctor", url: server.url)
            #expect(all.status == 0)
            #expect(all.output.contains("appendonly"))
            let few = try await redisdc("doctor", "--json", url: server.url.replacing("//", with: "//few:pw@"))
            #expect(few.status == 0)
            #expect(few.output.contains("CLIENT UNBLOCK"))
            #expect(few.output.split(separator: "\n").allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") })
            let none = try await redisdc("doctor", url: server.url.replacing("//", with: "//none:pw@"))
            #expect(none.status == 77)
            #expect(none.output.contains("missing: LPUSH"))
            let lists = try await redisdc("doctor", url: server.url.replacing("//", with: "//lists:pw@"))
            #expect(lists.status == 77)
            #expect(lists.output.contains("missing: a command of the engine's scripts"))
            #expect(try await redisdc("doctor", url: "redis://127.0.0.1:1").status == 69)
            try await withRedisClient(url: server.unixURL) { redis in
                let left = try await redis.send("KEYS", "*").array
                #expect(left == [])
            }
        }
    }
}
