// Lost replies and wake-ups.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("an acquire whose reply is lost is granted once")
    func lostAcquire() async throws {
        try await withProxiedCoordinator { proxy, proxied, _, redis in
            let semaphore = try proxied.semaphore("tickets", permits: 1000)
            try await semaphore.create()
            for round in 0..<30 {
                await proxy.dropNextReply(matching: "tickets")
                try await semaphore.wait()
                try await proxy.waitUntil { $0.droppedReplies == 2 * round + 1 }
                await proxy.dropNextReply(matching: "tickets")
                try await semaphore.acquireLease().release()
                try await proxy.waitUntil { $0.droppedReplies == 2 * round + 2 }
                try await until("round \(round) is settled") {
                    try await Audit(redis).resources["tickets"]?.consumed == round + 1
                }
            }
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.resources["tickets"]?.free == 970)
            #expect(audit.claims.isEmpty)
        }
    }

    @Test("a signal whose reply is lost adds its permits once")
    func lostSignal() async throws {
        try await withProxiedCoordinator { proxy, proxied, _, redis in
            let semaphore = try proxied.semaphore("tickets", permits: 0)
            try await semaphore.create()
            for round in 0..<30 {
                await proxy.dropNextReply(matching: "tickets")
                try await semaphore.signal(3)
                try await proxy.waitUntil { $0.droppedReplies == round + 1 }
            }
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.resources["tickets"]?.free == 90)
            #expect(audit.resources["tickets"]?.signalled == 90)
        }
    }

    @Test("a release whose reply is lost releases once and succeeds")
    func lostRelease() async throws {
        try await withProxiedCoordinator { proxy, proxied, other, redis in
            let mutex = try proxied.mutex("door")
            for round in 0..<30 {
                let lease = try await mutex.lock()
                let next = Task { try await other.mutex("door").lock() }
                try await until("the other waiter is queued") { try await other.inspect("door")?.waiterCount == 1 }
                await proxy.dropNextReply(matching: "door")
                try await lease.release()
                try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                let successor = try await next.value
                #expect(successor.fence > lease.fence)
                #expect(successor.isHeld)
                try await successor.release()
            }
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.resources.isEmpty && audit.claims.isEmpty)
        }
    }

    @Test("a cancel whose reply is lost leaves no waiter in the queue")
    func lostCancel() async throws {
        try await withProxiedCoordinator { proxy, proxied, other, redis in
            let semaphore = try proxied.semaphore("tickets", permits: 0)
            let signaller = try other.semaphore("tickets", permits: 0)
            for round in 0..<30 {
                let waiting = Task { try await semaphore.wait() }
                try await until("the waiter is queued") { try await other.inspect("tickets")?.waiterCount == 1 }
                await proxy.dropNextReply(matching: "tickets")
                waiting.cancel()
                #expect(await errorOf { try await waiting.value }?.code == .cancelled)
                try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                try await signaller.signal()
                #expect(try await signaller.tryWait())
            }
            try await Audit(redis).check()
        }
    }

    @Test("without wake-ups waiters poll and are served")
    func noWakeUps() async throws {
        var configuration = longTTL
        configuration.usesWakeUps = false
        configuration.pollInterval = .milliseconds(20)
        try await withCoordinators(configuration: configuration) { _, one, two, redis in
            let a = try one.semaphore("a", permits: 0)
            let b = try two.semaphore("a", permits: 0)
            for _ in 0..<10 {
                async let waiting: Void = a.wait(timeout: .seconds(30))
                try await until("the waiter is queued") { try await two.inspect("a")?.waiterCount == 1 }
                try await b.signal()
                try await waiting
            }
            #expect(try await redis.send("PUBSUB", "CHANNELS").array?.isEmpty == true)
        }
    }

    @Test("a heartbeat makes up for a wake-up that was not sent")
    func lostWakeUp() async throws {
        try await withCoordinators(configuration: shortTTL) { _, one, two, redis in
            let mute = try await ForeignNode(redis) {
                $0.replacingOccurrences(of: "call('PUBLISH', ", with: "tostring(")
            }
            let semaphore = try one.semaphore("s", permits: 0)
            for _ in 0..<5 {
                async let waiting: Void = semaphore.wait(timeout: .seconds(30))
                try await until("the waiter is queued") { try await two.inspect("s")?.waiterCount == 1 }
                try await mute.signal("s")
                try await waiting
            }
        }
    }

    @Test("waits succeed while the subscription connection is killed repeatedly")
    func killedSubscription() async throws {
        try await withCoordinators { _, one, two, redis in
            let a = try one.semaphore("s", permits: 0)
            let b = try two.semaphore("s", permits: 0)
            let killing = Task {
                while !Task.isCancelled {
                    _ = try await redis.send("CLIENT", "KILL", "TYPE", "pubsub")
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            for _ in 0..<200 {
                async let waiting: Void = a.wait(timeout: .seconds(30))
                try await b.signal()
                try await waiting
            }
            killing.cancel()
            _ = await killing.result
            #expect(try await a.value == 0)
            try await Audit(redis).check()
        }
    }
}
