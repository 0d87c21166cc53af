import Foundation
import Testing

@testable import RedisDCTesting

@Suite("A fault proxy's faults of time")
struct FaultProxyTimeTests {
    @Test("a delay holds each direction back at least as long as it says, for open and for new connections")
    func delay() async throws {
        try await withProxiedRedis { _, proxy in
            let open = try Wire(port: proxy.port)
            #expect(try await open.ask("PING") == "+PONG")
            for (direction, times) in [(FaultProxy.Direction.toServer, 1), (.toClient, 1), (.both, 2)] {
                await proxy.delay(.milliseconds(40), direction)
                for wire in [open, try Wire(port: proxy.port)] {
                    let begin = ContinuousClock.now
                    #expect(try await wire.ask("PING") == "+PONG")
                    #expect(ContinuousClock.now - begin >= .milliseconds(40 * times))
                }
                await proxy.delay(.zero)
            }
        }
    }

    @Test("a delay keeps the order, also when it gets shorter while bytes wait")
    func delayKeepsOrder() async throws {
        try await withProxiedRedis { _, proxy in
            let wire = try Wire(port: proxy.port)
            for number in 0..<50 {
                await proxy.delay(.milliseconds(number % 2 == 0 ? 20 : 0))
                try await wire.send(Wire.command(["ECHO", "\(number)"]))
            }
            for number in 0..<50 { #expect(try await wire.answer() == "\(number)") }
        }
    }

    @Test("a stall towards the server keeps requests back until it ends")
    func stallToServer() async throws {
        try await withProxiedRedis { redis, proxy in
            let wire = try Wire(port: proxy.port)
            #expect(try await wire.ask("PING") == "+PONG")
            await proxy.stall(.toServer)
            let requests = Wire.command(["INCR", "n"]) + Wire.command(["INCR", "n"])
            try await wire.send(requests)
            try await proxy.waitUntil { $0.keptBytes == requests.utf8.count }
            #expect(try await Wire.ask(port: redis.port, "GET", "n") == "nil")
            await proxy.unstall(.toServer)
            #expect(try await wire.answer() == ":1")
            #expect(try await wire.answer() == ":2")
        }
    }

    @Test("a stall towards the client keeps answers back, and the commands have run")
    func stallToClient() async throws {
        try await withProxiedRedis { redis, proxy in
            let wire = try Wire(port: proxy.port)
            await proxy.stall(.toClient)
            try await wire.send(Wire.command(["SET", "key", "value"]))
            let direct = try Wire(port: redis.port)
            try await proxy.waitUntil { $0.keptBytes == 5 }
            #expect(try await direct.ask("GET", "key") == "value")
            #expect(!wire.hasNews)
            await proxy.unstall(.toServer)
            #expect(!wire.hasNews)
            await proxy.unstall()
            #expect(try await wire.answer() == "+OK")
        }
    }

    @Test("a stall holds for new connections, and holds back their ends too")
    func stallNew() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.stall()
            let wire = try Wire(port: proxy.port)
            try await wire.send("PING\r\n")
            let direct = try Wire(port: redis.port)
            while try await !direct.ask("INFO", "clients").contains("connected_clients:2\r\n") {}
            await redis.kill()
            try await Task.sleep(for: .milliseconds(30))
            #expect(!wire.hasNews)
            await proxy.unstall()
            #expect(try await wire.everythingUntilEnd() == "")
        }
    }

    @Test("a stalled connection takes only so many bytes and then makes its sender wait")
    func stallIsBounded() async throws {
        try await withProxiedRedis { _, proxy in
            await proxy.stall(.toServer)
            let wire = try Wire(port: proxy.port)
            // The first bytes are there, so the rest is held back by the proxy and not by a connection to come.
            try await wire.send("x")
            try await proxy.waitUntil { $0.keptBytes == 1 }
            let taken = try await ChildProcess.onThreadOfItsOwn { wire.sendUntilFull(limit: 1 << 28) }
            // A megabyte of the proxy and what the two kernel buffers of a loopback connection hold.
            #expect(taken < 1 << 26)
            #expect(proxy.counters.keptBytes < 1 << 21)
        }
    }
}

@Suite("A fault proxy's lost and broken replies")
struct FaultProxyReplyTests {
    @Test("a dropped reply belongs to a command that has run, and the client sees its connection end")
    func dropReply() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.dropNextReply(matching: "INCR")
            let wire = try Wire(port: proxy.port)
            let other = try Wire(port: proxy.port)
            #expect(try await wire.ask("SET", "n", "41") == "+OK")
            try await wire.send(Wire.command(["INCR", "n"]))
            #expect(try await wire.everythingUntilEnd() == "")
            #expect(try await Wire.ask(port: redis.port, "GET", "n") == "42")
            #expect(proxy.counters.droppedReplies == 1)
            // Only that one reply, only that connection.
            #expect(try await other.ask("INCR", "n") == ":43")
            #expect(try await Wire.ask(port: proxy.port, "INCR", "n") == ":44")
        }
    }

    @Test("a dropped reply that the server takes its time for is waited for")
    func dropLateReply() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.dropNextReply(matching: "BLPOP")
            let wire = try Wire(port: proxy.port)
            try await wire.send(Wire.command(["BLPOP", "list", "0"]))
            let direct = try Wire(port: redis.port)
            while try await direct.ask("INFO", "clients").contains("blocked_clients:0\r\n") {}
            #expect(!wire.hasNews && proxy.counters.droppedReplies == 0)
            #expect(try await direct.ask("RPUSH", "list", "element") == ":1")
            #expect(try await wire.everythingUntilEnd() == "")
            #expect(try await direct.ask("LLEN", "list") == ":0")
            try await proxy.waitUntil { $0.droppedReplies == 1 }
        }
    }

    @Test("a request is recognised when it arrives in pieces")
    func dropSplitRequest() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.dropNextReply(matching: "INCR")
            let wire = try Wire(port: proxy.port)
            for (index, piece) in ["*2\r\n$4\r\nIN", "C", "R\r\n$1\r\nn\r\n"].enumerated() {
                let before = proxy.counters.bytesToServer
                try await wire.send(piece)
                try await proxy.waitUntil { $0.bytesToServer > before || index == 2 }
            }
            #expect(try await wire.everythingUntilEnd() == "")
            #expect(try await Wire.ask(port: redis.port, "GET", "n") == "1")
        }
    }

    @Test("what a stall holds back is not dropped before it has been forwarded")
    func dropAfterStall() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.dropNextReply(matching: "SET")
            await proxy.stall(.toServer)
            let wire = try Wire(port: proxy.port)
            try await wire.send(Wire.command(["SET", "key", "value"]))
            try await proxy.waitUntil { $0.keptBytes > 0 }
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "nil")
            #expect(proxy.counters.droppedReplies == 0)
            await proxy.unstall()
            #expect(try await wire.everythingUntilEnd() == "")
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "value")
        }
    }

    @Test("answers that came before the dropped one still reach the client")
    func dropKeepsEarlier() async throws {
        try await withProxiedRedis { _, proxy in
            await proxy.stall(.toClient)
            await proxy.dropNextReply(matching: "INCR")
            let wire = try Wire(port: proxy.port)
            try await wire.send(Wire.command(["ECHO", "first"]))
            try await proxy.waitUntil { $0.keptBytes == 11 }
            try await wire.send(Wire.command(["INCR", "n"]))
            try await proxy.waitUntil { $0.droppedReplies == 1 }
            await proxy.unstall()
            #expect(try await wire.everythingUntilEnd() == "$5\r\nfirst\r\n")
        }
    }

    @Test("two calls lose two replies, each its own")
    func dropTwo() async throws {
        try await withProxiedRedis { _, proxy in
            await proxy.dropNextReply(matching: Array("GET".utf8))
            await proxy.dropNextReply(matching: "SET")
            for command in [["SET", "key", "value"], ["GET", "key"]] {
                let wire = try Wire(port: proxy.port)
                try await wire.send(Wire.command(command))
                #expect(try await wire.everythingUntilEnd() == "")
            }
            #expect(proxy.counters.droppedReplies == 2)
            #expect(try await Wire.ask(port: proxy.port, "GET", "key") == "value")
        }
    }

    @Test("swallowed replies never come, the commands have run, and the connection stays open")
    func swallow() async throws {
        try await withProxiedRedis { redis, proxy in
            let wire = try Wire(port: proxy.port)
            await proxy.swallowReplies()
            try await wire.send(Wire.command(["SET", "key", "value"]))
            try await proxy.waitUntil { $0.swallowedBytes == 5 }
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "value")
            #expect(!wire.hasNews)
            await proxy.swallowReplies(false)
            #expect(try await wire.ask("PING") == "+PONG")
        }
    }

    @Test("a cut reply ends in the middle", arguments: [0, 1, 9])
    func cut(_ count: Int) async throws {
        try await withProxiedRedis { redis, proxy in
            let wire = try Wire(port: proxy.port)
            #expect(try await wire.ask("SET", "key", "0123456789") == "+OK")
            await proxy.cutNextReply(afterBytes: count)
            try await wire.send(Wire.command(["GET", "key"]))
            #expect(try await wire.everythingUntilEnd() == String("$10\r\n0123456789\r\n".unicodeScalars.prefix(count)))
            #expect(proxy.counters.cutReplies == 1)
            try await proxy.waitUntil { $0.openConnections == 0 }
            #expect(try await Wire.ask(port: proxy.port, "GET", "key") == "0123456789")
        }
    }

    @Test("a cut after more bytes than one reply has goes on to the next")
    func cutAcrossReplies() async throws {
        try await withProxiedRedis { _, proxy in
            let wire = try Wire(port: proxy.port)
            await proxy.cutNextReply(afterBytes: 10)
            #expect(try await wire.ask("PING") == "+PONG")
            try await wire.send("PING\r\n")
            #expect(try await wire.everythingUntilEnd() == "+PO")
        }
    }
}

@Suite("A fault proxy's broken connections")
struct FaultProxyConnectionTests {
    @Test("cutting ends all connections at once, stalled ones too, and lets new ones in")
    func cutAll() async throws {
        try await withProxiedRedis { redis, proxy in
            for style in [FaultProxy.CutStyle.close, .reset] {
                let wires = try (1...3).map { _ in try Wire(port: proxy.port) }
                for wire in wires { #expect(try await wire.ask("PING") == "+PONG") }
                await proxy.stall()
                await proxy.cutAll(style)
                for wire in wires {
                    #expect(await eventually { wire.hasNews })
                    #expect(wire.endedWithReset == (style == .reset))
                }
                try await proxy.waitUntil { $0.openConnections == 0 }
                await proxy.unstall()
                #expect(try await Wire.ask(port: proxy.port, "PING") == "+PONG")
            }
            #expect(try await eventuallyAlone(redis.port))
        }
    }

    @Test("refused connections end at once, and open ones go on")
    func refuse() async throws {
        try await withProxiedRedis { _, proxy in
            let open = try Wire(port: proxy.port)
            #expect(try await open.ask("PING") == "+PONG")
            await proxy.refuse()
            #expect(try await Wire.everythingUntilEnd(port: proxy.port) == "")
            #expect(proxy.counters.refusedConnections == 1)
            #expect(proxy.counters.acceptedConnections == 1)
            #expect(try await open.ask("PING") == "+PONG")
            await proxy.refuse(false)
            #expect(try await Wire.ask(port: proxy.port, "PING") == "+PONG")
        }
    }

    @Test("a reset by the client reaches the server's side as the end of its connection")
    func clientReset() async throws {
        try await withProxiedRedis { redis, proxy in
            try await withFaultProxy(to: .port(proxy.port)) { outer in
                let wire = try Wire(port: outer.port)
                #expect(try await wire.ask("PING") == "+PONG")
                await outer.cutAll(.reset)
                try await proxy.waitUntil { $0.openConnections == 0 }
                #expect(try await eventuallyAlone(redis.port))
            }
        }
    }

    @Test("a reset by the server reaches the client as a reset")
    func serverReset() async throws {
        try await withProxiedRedis { _, proxy in
            try await withFaultProxy(to: .port(proxy.port)) { outer in
                let wire = try Wire(port: outer.port)
                #expect(try await wire.ask("PING") == "+PONG")
                await proxy.cutAll(.reset)
                #expect(await eventually { wire.hasNews })
                #expect(wire.endedWithReset)
            }
        }
    }

    @Test("healing ends every fault")
    func heal() async throws {
        try await withProxiedRedis { _, proxy in
            await proxy.dropNextReply(matching: "")
            await proxy.cutNextReply(afterBytes: 0)
            await proxy.swallowReplies()
            await proxy.refuse()
            await proxy.stall()
            await proxy.delay(.seconds(60))
            await proxy.heal()
            let answer = try await Wire.ask(port: proxy.port, "PING")
            #expect(answer == "+PONG")
        }
    }
}

/// Runs a body with a server and a proxy in front of it.
private func withProxiedRedis(_ body: (LocalRedis, FaultProxy) async throws -> Void) async throws {
    try await withLocalRedis { redis in
        try await withFaultProxy(to: .port(redis.port)) { proxy in
            try await body(redis, proxy)
        }
    }
}
