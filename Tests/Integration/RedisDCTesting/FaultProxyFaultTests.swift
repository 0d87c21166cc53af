import ChildProcesses
import Foundation
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("FaultProxy: delays and stalls")
struct FaultProxyTimeTests {
    @Test("a delay applies to its direction on open and on new connections")
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

    @Test("bytes stay in order when the delay is shortened")
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

    @Test("a stall towards the server holds requests back until it ends")
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

    @Test("a stall towards the client holds replies back after the commands have run")
    func stallToClient() async throws {
        try await withProxiedRedis { redis, proxy in
            let wire = try Wire(port: proxy.port)
            await proxy.stall(.toClient)
            try await wire.send(Wire.command(["SET", "key", "value"]))
            let direct = try Wire(port: redis.port)
            try await proxy.waitUntil { $0.keptBytes == 5 }
            #expect(try await direct.ask("GET", "key") == "value")
            #expect(!wire.hasInput)
            await proxy.unstall(.toServer)
            #expect(!wire.hasInput)
            await proxy.unstall()
            #expect(try await wire.answer() == "+OK")
        }
    }

    @Test("a stall applies to new connections and holds their closes back")
    func stallNew() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.stall()
            let wire = try Wire(port: proxy.port)
            try await wire.send("PING\r\n")
            let direct = try Wire(port: redis.port)
            while try await !direct.ask("INFO", "clients").contains("connected_clients:2\r\n") {}
            await redis.kill()
            try await Task.sleep(for: .milliseconds(30))
            #expect(!wire.hasInput)
            await proxy.unstall()
            #expect(try await wire.everythingUntilEnd() == "")
        }
    }

    @Test("a stalled connection buffers a limited number of bytes, then its sender waits")
    func stallIsBounded() async throws {
        try await withProxiedRedis { _, proxy in
            await proxy.stall(.toServer)
            let wire = try Wire(port: proxy.port)
            // The connection is established: the proxy holds the rest back, not the kernel's accept queue.
            try await wire.send("x")
            try await proxy.waitUntil { $0.keptBytes == 1 }
            let taken = try await ChildProcess.onThreadOfItsOwn { wire.sendUntilFull(maxBytes: 1 << 28) }
            // The proxy holds one megabyte, and the two kernel buffers of a loopback connection the rest.
            #expect(taken < 1 << 26)
            #expect(proxy.counters.keptBytes < 1 << 21)
        }
    }
}

@Suite("FaultProxy: dropped, swallowed and cut replies")
struct FaultProxyReplyTests {
    @Test("a command whose reply is dropped has run, and its connection closes")
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
            // The fault affects one reply on one connection.
            #expect(try await other.ask("INCR", "n") == ":43")
            #expect(try await Wire.ask(port: proxy.port, "INCR", "n") == ":44")
        }
    }

    @Test("a reply that arrives late is dropped when it arrives")
    func dropLateReply() async throws {
        try await withProxiedRedis { redis, proxy in
            await proxy.dropNextReply(matching: "BLPOP")
            let wire = try Wire(port: proxy.port)
            try await wire.send(Wire.command(["BLPOP", "list", "0"]))
            let direct = try Wire(port: redis.port)
            while try await direct.ask("INFO", "clients").contains("blocked_clients:0\r\n") {}
            #expect(!wire.hasInput && proxy.counters.droppedReplies == 0)
            #expect(try await direct.ask("RPUSH", "list", "element") == ":1")
            #expect(try await wire.everythingUntilEnd() == "")
            #expect(try await direct.ask("LLEN", "list") == ":0")
            try await proxy.waitUntil { $0.droppedReplies == 1 }
        }
    }

    @Test("a request that arrives in pieces is found")
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

    @Test("the reply to a stalled request is dropped only after the request is forwarded")
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

    @Test("replies before the dropped one still reach the client")
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

    @Test("two calls drop two replies")
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

    @Test(
        "commands whose replies are swallowed have run, and the connection stays open until the fault ends",
        arguments: [false, true])
    func swallow(heals: Bool) async throws {
        try await withProxiedRedis { redis, proxy in
            let other = try Wire(port: proxy.port)
            #expect(try await other.ask("PING") == "+PONG")
            let wire = try Wire(port: proxy.port)
            await proxy.swallowReplies()
            try await wire.send(Wire.command(["SET", "key", "value"]))
            try await proxy.waitUntil { $0.swallowedBytes == 5 }
            #expect(try await Wire.ask(port: redis.port, "GET", "key") == "value")
            #expect(!wire.hasInput)
            if heals { await proxy.heal() } else { await proxy.swallowReplies(false) }
            // It would take another reply for the lost one.
            #expect(try await wire.everythingUntilEnd() == "")
            #expect(try await other.ask("PING") == "+PONG")
        }
    }

    @Test("a cut reply ends after the given number of bytes", arguments: [0, 1, 9])
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

    @Test("a cut after more bytes than one reply affects the next reply")
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

@Suite("FaultProxy: closed and refused connections")
struct FaultProxyConnectionTests {
    @Test("cutAll closes all connections, including stalled ones, and allows new ones")
    func cutAll() async throws {
        try await withProxiedRedis { redis, proxy in
            for style in [FaultProxy.CutStyle.close, .reset] {
                let wires = try (1...3).map { _ in try Wire(port: proxy.port) }
                for wire in wires { #expect(try await wire.ask("PING") == "+PONG") }
                await proxy.stall()
                await proxy.cutAll(style)
                for wire in wires {
                    #expect(await eventually { wire.hasInput })
                    #expect(wire.endedWithReset == (style == .reset))
                }
                try await proxy.waitUntil { $0.openConnections == 0 }
                await proxy.unstall()
                #expect(try await Wire.ask(port: proxy.port, "PING") == "+PONG")
            }
            #expect(try await eventuallyAlone(redis.port))
        }
    }

    @Test("refused connections close immediately, and open ones are not affected")
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

    @Test("a reset by the client closes the connection to the server")
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

    @Test("a reset by the server is forwarded to the client as a reset")
    func serverReset() async throws {
        try await withProxiedRedis { _, proxy in
            try await withFaultProxy(to: .port(proxy.port)) { outer in
                let wire = try Wire(port: outer.port)
                #expect(try await wire.ask("PING") == "+PONG")
                await proxy.cutAll(.reset)
                #expect(await eventually { wire.hasInput })
                #expect(wire.endedWithReset)
            }
        }
    }

    @Test("heal ends all faults")
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

/// Runs a body with a server and a proxy that forwards to it.
private func withProxiedRedis(_ body: (LocalRedis, FaultProxy) async throws -> Void) async throws {
    try await withLocalRedis { redis in
        try await withFaultProxy(to: .port(redis.port)) { proxy in
            try await body(redis, proxy)
        }
    }
}
