// Every public operation of ClassicSemaphore and of publish and subscribe, by one user of the server.
import Hiredis
import RedisDC
import TestSupport
import Testing

/// Runs every public operation of `ClassicSemaphore`, with or without a namespace.
struct ClassicOperations {
    let redis: RedisClient
    let namespace: String?

    func run() async throws {
        let semaphore = try ClassicSemaphore("classic", redis: redis, namespace: namespace)
        #expect(try await semaphore.create(permits: 1))
        try await semaphore.wait()
        #expect(try await semaphore.tryWait() == false)
        let waiting = Task { try await semaphore.wait(timeout: .seconds(60)) }
        try await semaphore.signal()
        try await waiting.value
        try await semaphore.signal(2)
        #expect(try await semaphore.value == 2)
        #expect(try await semaphore.tryWait())
        try await semaphore.wait(timeout: .zero)
        #expect(await code { try await semaphore.wait(timeout: .milliseconds(20)) } == .timedOut)
        // Whenever the cancellation arrives, the permit is there at the end.
        for _ in 0..<20 {
            let cancelled = Task { try await semaphore.wait() }
            await Task.yield()
            cancelled.cancel()
            try await semaphore.signal()
            if case .failure = await cancelled.result { try await semaphore.wait() }
        }
        let first = Task { try await semaphore.wait() }
        let second = Task { try await semaphore.wait() }
        try await semaphore.destroy()
        // A waiter that comes after the destruction fails as well.
        #expect(await code { try await first.value } == .destroyed)
        #expect(await code { try await second.value } == .destroyed)
    }

    private func code(_ body: () async throws -> Void) async -> RedisDCError.Code? {
        do {
            try await body()
            return nil
        } catch { return (error as? RedisDCError)?.code }
    }
}

/// Publishes and subscribes on channels with a prefix.
struct PubSubOperations {
    let redis: RedisClient
    /// The beginning of the channels; the pattern that is subscribed is this and `*`.
    let prefix: String

    func run() async throws {
        var topics: [SubscriptionTopic] = [.channel(prefix + "news"), .pattern(prefix + "*")]
        // Redis 7.0 and later.
        if let version = redis.serverVersion, version >= ServerVersion(7, 0) { topics.append(.shard(prefix + "news")) }
        for topic in topics {
            let subscription = try await redis.subscribe(to: [topic])
            let channel = SubscriptionTopic(topic.kind == .shard ? .shard : .channel, prefix + "news")
            #expect(try await redis.publish("hello", to: channel) == 1)
            let received = Task {
                for try await case .message(let message) in subscription { return message.payload }
                return []
            }
            #expect(try await received.value == Array("hello".utf8))
            await subscription.unsubscribe(from: [topic])
            try await until("the server has unsubscribed") { try await redis.publish("", to: channel) == 0 }
        }
    }
}
