import Foundation
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("FaultProxy: forwarding without faults")
struct FaultProxyTests {
    @Test("the proxy forwards to a port and to a Unix socket, and counts the bytes")
    func forwards() async throws {
        try await withLocalRedis { redis in
            for target in [FaultProxy.Target.port(redis.port), .unixSocket(redis.socketPath)] {
                try await withFaultProxy(to: target) { proxy in
                    let wire = try Wire(port: proxy.port)
                    try await wire.send("PING\r\n")
                    #expect(try await wire.answer() == "+PONG")
                    try await proxy.waitUntil { $0.bytesToServer == 6 && $0.bytesToClient == 7 }
                    #expect(proxy.counters.acceptedConnections == 1)
                    #expect(proxy.counters.openConnections == 1)
                }
            }
        }
    }

    @Test("large data passes unchanged in both directions on concurrent connections")
    func muchData() async throws {
        try await withLocalRedis { redis in
            try await withFaultProxy(to: .port(redis.port)) { proxy in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 1...4 {
                        group.addTask {
                            let value = String(repeating: "0123456789abcde\(number)", count: 1 << 17)
                            let wire = try Wire(port: proxy.port)
                            #expect(try await wire.ask("SET", "key\(number)", value) == "+OK")
                            #expect(try await wire.ask("GET", "key\(number)") == value)
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test("a client that has finished sending still receives its reply")
    func halfClose() async throws {
        try await withLocalRedis { redis in
            try await withFaultProxy(to: .port(redis.port)) { proxy in
                let wire = try Wire(port: proxy.port)
                try await wire.send("PING\r\n")
                wire.finishSending()
                #expect(try await wire.everythingUntilEnd() == "+PONG\r\n")
                try await proxy.waitUntil { $0.openConnections == 0 }
            }
        }
    }

    @Test("a close by either side is forwarded to the other side")
    func closes() async throws {
        try await withLocalRedis { redis in
            try await withFaultProxy(to: .port(redis.port)) { proxy in
                var wire: Wire? = try Wire(port: proxy.port)
                #expect(try await wire?.ask("PING") == "+PONG")
                wire = nil
                try await proxy.waitUntil { $0.openConnections == 0 }
                #expect(try await eventuallyAlone(redis.port))

                let quitter = try Wire(port: proxy.port)
                try await quitter.send("QUIT\r\n")
                #expect(try await quitter.everythingUntilEnd() == "+OK\r\n")
                #expect(!quitter.endedWithReset)

                let victim = try Wire(port: proxy.port)
                #expect(try await victim.ask("PING") == "+PONG")
                await redis.kill()
                #expect(try await victim.everythingUntilEnd() == "")
            }
        }
    }

    @Test("the proxy closes the client's connection while the server is unreachable")
    func serverDown() async throws {
        try await withLocalRedis { redis in
            try await withFaultProxy(to: .port(redis.port)) { proxy in
                await redis.kill()
                #expect(try await Wire.everythingUntilEnd(port: proxy.port) == "")
                try await proxy.waitUntil { $0.openConnections == 0 }
                try await redis.restart()
                #expect(try await Wire.ask(port: proxy.port, "PING") == "+PONG")
            }
        }
    }

    @Test("stop closes all connections, and a second stop has no effect")
    func stop() async throws {
        try await withLocalRedis { redis in
            let proxy = try await FaultProxy.start(to: .port(redis.port))
            let wires = try (1...5).map { _ in try Wire(port: proxy.port) }
            for wire in wires { #expect(try await wire.ask("PING") == "+PONG") }
            await proxy.stall()
            await proxy.stop()
            #expect(proxy.counters.openConnections == 0)
            for wire in wires { #expect(try await wire.everythingUntilEnd() == "") }
            // A child that another test starts has the listening socket, too, until it runs its program.
            #expect(await eventually { (try? Wire(port: proxy.port)) == nil })
            #expect(try await eventuallyAlone(redis.port))
            await proxy.stop()
            let error = await #expect(throws: FaultProxyError.self) {
                try await proxy.waitUntil { $0.droppedReplies == 1 }
            }
            #expect(error?.code == .stopped)
        }
    }

    @Test("releasing the proxy closes its port")
    func dropped() async throws {
        var proxy: FaultProxy? = try await FaultProxy.start(to: .port(1))
        let port = try #require(proxy?.port)
        proxy = nil
        #expect(await eventually { (try? Wire(port: port)) == nil })
    }

    @Test("a wait ends at its timeout and when its task is cancelled")
    func waits() async throws {
        try await withFaultProxy(to: .port(1)) { proxy in
            let error = await #expect(throws: FaultProxyError.self) {
                try await proxy.waitUntil(within: .milliseconds(20)) { $0.cutReplies == 1 }
            }
            #expect(error?.code == .timedOut)
            #expect(error?.description.contains("cutReplies: 0") == true)
            let wait = Task { try await proxy.waitUntil { $0.cutReplies == 1 } }
            wait.cancel()
            await #expect(throws: CancellationError.self) { try await wait.value }
        }
    }
}

/// Waits until the server has no other client; returns false after a timeout.
func eventuallyAlone(_ port: Int) async throws -> Bool {
    let observer = try Wire(port: port)
    for _ in 1...2000 {
        if try await observer.ask("INFO", "clients").contains("connected_clients:1\r\n") { return true }
        try await Task.sleep(for: .milliseconds(2))
    }
    return false
}
