import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension ClassicSemaphoreTests {
    @Suite("In one process")
    struct OneProcess {
        @Test("signal adds permits, wait takes them, and value counts them")
        func basics() async throws {
            try await withServer { _, redis, _ in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                #expect(try await semaphore.create(permits: 2))
                try await semaphore.wait()
                #expect(try await semaphore.value == 1)
                #expect(try await semaphore.tryWait())
                #expect(try await semaphore.tryWait() == false)
                try await semaphore.signal(3)
                #expect(try await semaphore.value == 3)
                try await semaphore.wait(timeout: .zero)
                try await semaphore.wait(timeout: .seconds(30))
                #expect(try await semaphore.value == 1)
            }
        }

        @Test("create takes effect once, and another number is a conflict that names both")
        func create() async throws {
            try await withServer { _, redis, _ in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                #expect(try await semaphore.create(permits: 5))
                #expect(try await semaphore.create(permits: 5) == false)
                for _ in 0..<5 { try await semaphore.wait() }
                // An empty list does not exist in Redis; the semaphore does.
                #expect(try await semaphore.create(permits: 5) == false)
                #expect(try await semaphore.value == 0)
                let error = await errorOf { try await semaphore.create(permits: 6) }
                #expect(error?.code == .conflict)
                #expect(error?.message.contains("5") == true && error?.message.contains("6") == true)
                #expect(try await semaphore.destroy())
                #expect(try await semaphore.destroy() == false)
                #expect(try await semaphore.create(permits: 6))
                #expect(try await semaphore.value == 6)
            }
        }

        @Test("a namespace separates semaphores of one name, and begins all of their keys")
        func namespaces() async throws {
            try await withServer { _, redis, other in
                let shared = try ClassicSemaphore("s", redis: redis)
                let own = try ClassicSemaphore("s", redis: redis, namespace: "alice")
                #expect(shared.namespace == nil && own.namespace == "alice")
                try await shared.create(permits: 1)
                try await own.create(permits: 2)
                #expect(try await shared.value == 1)
                #expect(try await own.value == 2)
                _ = try await other.send("LPUSH", "rdc:{alice:sem:s}", "1")
                #expect(try await own.value == 3)
                let waiting = try ClassicSemaphore("empty", redis: redis, namespace: "alice")
                let cancelled = Task { try await waiting.wait() }
                try await until("the waiter is blocked") { try await other.blockedClients() == 1 }
                try await shared.destroy()
                cancelled.cancel()
                _ = await cancelled.result
                let keys = try await other.send("KEYS", "*").array?.compactMap(\.string) ?? []
                #expect(keys.filter { !$0.hasPrefix("rdc:{alice:") } == ["rdc:sem-gone:{rdc:sem:s}"])
                for name in ["", "a:b", "a{b", String(repeating: "x", count: 513)] {
                    let error = await errorOf { _ = try ClassicSemaphore("s", redis: redis, namespace: name) }
                    #expect(error?.code == .invalidArgument)
                }
            }
        }

        @Test("a million permits are created in steps of at most 10,000, between which others are served")
        func million() async throws {
            try await withServer { _, redis, _ in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                #expect(try await semaphore.create(permits: 1_000_000))
                #expect(try await semaphore.value == 1_000_000)
                #expect(try await redis.calls(of: "evalsha") >= 100)
                #expect(try await semaphore.create(permits: 1_000_000) == false)
                try await semaphore.signal(20_000)
                #expect(try await semaphore.value == 1_020_000)
            }
        }

        @Test("a semaphore whose creator died between two steps is completed by the next create")
        func creatorDied() async throws {
            try await withServer { _, redis, other in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                _ = try await other.send(
                    "HSET", "rdc:sem-meta:{rdc:sem:s}", "permits", "50000", "missing", "40000")
                _ = try await other.send(RedisCommand(["LPUSH", "rdc:sem:s"] + Array(repeating: "1", count: 10_000)))
                #expect(await errorOf { try await semaphore.create(permits: 7) }?.code == .conflict)
                #expect(try await semaphore.value == 10_000)
                #expect(try await semaphore.create(permits: 50_000) == false)
                #expect(try await semaphore.value == 50_000)
            }
        }

        @Test(
            "bad names and numbers are refused before anything is sent",
            arguments: ["", String(repeating: "x", count: 513), "a{b", "a}b", "a\nb", "a\u{0}b", "a\u{85}b"])
        func badNames(name: String) async throws {
            // No server listens on this port, because nothing is sent.
            let redis = try RedisClient(url: "redis://127.0.0.1:1")
            let error = await errorOf { _ = try ClassicSemaphore(name, redis: redis) }
            #expect(error?.code == .invalidArgument)
            let good = try ClassicSemaphore(String(repeating: "ö", count: 256), redis: redis)
            for count in [0, -1, 20_001] {
                #expect(await errorOf { try await good.signal(count) }?.code == .invalidArgument)
            }
            for permits in [-1, 1_000_001] {
                #expect(await errorOf { try await good.create(permits: permits) }?.code == .invalidArgument)
            }
            #expect(await errorOf { try await good.wait(timeout: .seconds(-1)) }?.code == .invalidArgument)
        }

        @Test("a key with a value of another type is named in the error and left unchanged")
        func wrongType() async throws {
            try await withServer { _, redis, _ in
                _ = try await redis.send("SET", "rdc:sem:s", "someone's")
                let semaphore = try ClassicSemaphore("s", redis: redis)
                let attempts: [() async throws -> Void] = [
                    { try await semaphore.create(permits: 1) }, { try await semaphore.signal() },
                    { try await semaphore.wait(timeout: .milliseconds(10)) }, { _ = try await semaphore.tryWait() },
                    { _ = try await semaphore.value },
                ]
                for attempt in attempts {
                    let error = await errorOf { try await attempt() }
                    #expect(error?.code == .wrongType)
                    #expect(error?.message.contains("rdc:sem:s") == true)
                }
                #expect(try await redis.send("GET", "rdc:sem:s").string == "someone's")
                #expect(try await redis.send("KEYS", "*").array?.count == 1)
            }
        }

        @Test("LPUSH and BRPOP from redis-cli signal and wait")
        func interoperates() async throws {
            try await withServer { server, redis, other in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                let cli = ["-s", server.socketPath]
                let wait = Task { try await semaphore.wait() }
                try await until("it waits") { try await other.blockedClients() == 1 }
                _ = try await Child("redis-cli", cli + ["LPUSH", "rdc:sem:s", "1"]).result()
                try await wait.value
                let foreign = try Child("redis-cli", cli + ["BRPOP", "rdc:sem:s", "0"])
                try await until("redis-cli waits") { try await other.blockedClients() == 1 }
                try await semaphore.signal()
                #expect(try await foreign.result().contains("rdc:sem:s"))
                #expect(try await semaphore.value == 0)
            }
        }

        @Test("destroy wakes all waiters, also when a woken waiter dies before it wakes the next")
        func destroy() async throws {
            try await withServer { server, redis, other in
                let here = try ClassicSemaphore("s", redis: redis)
                let there = try ClassicSemaphore("s", redis: other)
                try await here.create(permits: 0)
                let waits = (0..<40).map { number in
                    Task { await errorOf { try await (number % 2 == 0 ? here : there).wait() } }
                }
                // The first waiter takes a tombstone and never returns it.
                try await until("all wait") { try await redis.blockedClients() == 40 }
                let thief = try Child("redis-cli", ["-s", server.socketPath, "BRPOP", "rdc:sem-gone:{rdc:sem:s}", "0"])
                try await until("the thief waits") { try await redis.blockedClients() == 41 }
                try await here.destroy()
                for wait in waits { #expect(await wait.value?.code == .destroyed) }
                _ = try await thief.result()
                try await here.create(permits: 1)
                try await there.wait()
            }
        }

        @Test("a cancel and a signal at the same moment neither lose nor create a permit")
        func cancelRacesSignal() async throws {
            try await withServer { _, redis, other in
                let waiting = try ClassicSemaphore("s", redis: redis)
                let signalling = try ClassicSemaphore("s", redis: other)
                var generator = SplitMix(seed: testSeed())
                var taken = 0
                var cancelled = 0
                for round in 0..<4000 {
                    let wait = Task { try await waiting.wait() }
                    let signal = Task { try await signalling.signal() }
                    if round % 2 == 0 {
                        try await Task.sleep(for: .microseconds(Int.random(in: 0...400, using: &generator)))
                    }
                    wait.cancel()
                    do {
                        try await wait.value
                        taken += 1
                    } catch let error as RedisDCError where error.code == .cancelled { cancelled += 1 }
                    try await signal.value
                }
                #expect(try await signalling.value == 4000 - taken)
                #expect(taken > 0 && cancelled > 0, "the race was always won by the same side: \(taken), \(cancelled)")
            }
        }

        @Test("waiters whose connections are killed go on waiting, and no permit is lost")
        func killedWaiters() async throws {
            try await withServer { _, redis, other in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                let signalling = try ClassicSemaphore("s", redis: other)
                let waits = (0..<20).map { _ in Task { try await semaphore.wait() } }
                for _ in 0..<10 {
                    try await until("all wait") { try await other.blockedClients() == 20 }
                    _ = try await other.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                }
                try await until("all wait again") { try await other.blockedClients() == 20 }
                try await signalling.signal(25)
                for wait in waits { try await wait.value }
                #expect(try await signalling.value == 5)
            }
        }

        @Test("a waiter goes on waiting through a restart of the server, until its deadline")
        func restart() async throws {
            try await withServer(.init(persistence: .appendOnly(fsync: .always))) { server, redis, other in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                try await semaphore.create(permits: 0)
                let wait = Task { try await semaphore.wait() }
                let late = Task { await errorOf { try await semaphore.wait(timeout: .milliseconds(400)) } }
                // On a busy machine the time of one may be up before the other one waits.
                try await until("they wait") { try await other.blockedClients() > 0 }
                await server.kill()
                #expect(await late.value?.code == .timedOut)
                try await server.restart()
                try await until("it waits again") { try await other.blockedClients() == 1 }
                try await ClassicSemaphore("s", redis: other).signal()
                try await wait.value
                #expect(try await semaphore.create(permits: 0) == false)
            }
        }

        @Test("a permit is returned once, also when the reply to its return is lost")
        func lostGiveBack() async throws {
            try await withServer { server, _, other in
                try await withFaultProxy(to: .port(server.port)) { proxy in
                    try await withTestClient(url: "redis://127.0.0.1:\(proxy.port)") { redis in
                        let semaphore = try ClassicSemaphore("s", redis: redis)
                        let direct = try ClassicSemaphore("s", redis: other)
                        var generator = SplitMix(seed: testSeed())
                        var givenBack = 0
                        // It takes luck to cancel a wait at the moment when it gets its permit.
                        for round in 1...5000 where round <= 100 || givenBack == 0 {
                            let before = proxy.counters.droppedReplies
                            // Matches the script that returns a permit, and nothing else that this client sends.
                            if round == 1 { await proxy.dropNextReply(matching: "rdc:sem-back:") }
                            let wait = Task { try await semaphore.wait() }
                            let signal = Task { try await direct.signal() }
                            if round % 2 == 0 {
                                try await Task.sleep(for: .microseconds(Int.random(in: 0...500, using: &generator)))
                            }
                            wait.cancel()
                            let result = await wait.result
                            try await signal.value
                            let isTaken = if case .success = result { 1 } else { 0 }
                            #expect(try await direct.value == 1 - isTaken)
                            if isTaken == 0 { #expect(try await direct.tryWait()) }
                            if proxy.counters.droppedReplies > before {
                                givenBack += 1
                                await proxy.dropNextReply(matching: "rdc:sem-back:")
                            }
                        }
                        #expect(givenBack > 0, "no reply of a returned permit was ever dropped")
                    }
                }
            }
        }

        @Test("a user without the rights to CLIENT and INFO loses no permit by cancel, timeout or signal")
        func leastPrivileged() async throws {
            let rule = "worker on >secret ~rdc:* resetchannels &rdc:* +@all -@admin -@dangerous -client -info"
            try await withServer(.init(aclUsers: [rule])) {
                $0.credentials = .init(username: "worker", password: "secret")
                $0.blockingSlice = .milliseconds(20)
            } _: { _, redis, other in
                let semaphore = try ClassicSemaphore("s", redis: redis)
                let direct = try ClassicSemaphore("s", redis: other)
                try await semaphore.create(permits: 0)
                var generator = SplitMix(seed: testSeed())
                var taken = 0
                for round in 0..<60 {
                    let (signalPause, cancelPause) = (
                        Int.random(in: 0...10, using: &generator), Int.random(in: 0...10, using: &generator)
                    )
                    let wait = Task {
                        round % 3 == 0
                            ? try await semaphore.wait(timeout: .milliseconds(5)) : try await semaphore.wait()
                    }
                    let signal = Task {
                        try await Task.sleep(for: .milliseconds(signalPause))
                        try await direct.signal()
                    }
                    if round % 3 == 1 {
                        try await Task.sleep(for: .milliseconds(cancelPause))
                        wait.cancel()
                    }
                    if case .success = await wait.result { taken += 1 }
                    try await signal.value
                }
                #expect(try await direct.value == 60 - taken)
                try await semaphore.destroy()
            }
        }
    }
}
