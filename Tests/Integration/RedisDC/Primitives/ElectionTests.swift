import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Election", .serialized)
    struct ElectionTests {
        @Test("one candidate leads at a time, terms grow, and observers are notified of each change without polling")
        func turns() async throws {
            var configuration = longTTL
            // Changes must be published: polling would take an hour.
            configuration.pollInterval = .seconds(3600)
            try await withCoordinators(configuration: configuration) { _, one, two, _ in
                let election = try one.election("e")
                let other = try two.election("e")
                #expect(try await other.leader() == nil)
                let seen = Leaders(other)
                try await until("nobody leads") { await seen.last == .some(nil) }
                var last: UInt64 = 0
                for round in 0..<20 {
                    let term = try await (round.isMultiple(of: 2) ? election : other).campaign()
                    #expect(term.fence > last)
                    last = term.fence
                    try await until("it is known who leads") { [last] in await seen.last??.term == last }
                    #expect(await errorOf { _ = try await election.campaign(timeout: .zero) }?.code == .timedOut)
                    try await election.resign(term)
                    try await until("it is known that nobody leads") { await seen.last == .some(nil) }
                }
                let node = try await election.withLeadership { term in
                    let leader = try await other.leader()
                    #expect(leader?.term == term.fence)
                    return leader?.node
                }
                #expect(node?.isEmpty == false)
                #expect(try await other.leader() == nil)
            }
        }

        @Test("a body that does not use the leadership leads until it returns or throws")
        func bodyWithoutTerm() async throws {
            try await withCoordinators { _, one, two, _ in
                let (election, other) = (try one.election("e"), try two.election("e"))
                let isLed = try await election.withLeadership(timeout: .seconds(60)) {
                    #expect(await errorOf { try await other.withLeadership(timeout: .zero) {} }?.code == .timedOut)
                    return try await other.leader() != nil
                }
                #expect(isLed)
                #expect(try await other.leader() == nil)
                await #expect(throws: CancellationError.self) {
                    try await election.withLeadership { throw CancellationError() }
                }
                #expect(try await other.leader() == nil)
            }
        }

        @Test("a candidate leads and resigns without waiting for the reply to its publication")
        func slowPublication() async throws {
            try await withServer { _, redis, _ in
                let slow = SlowPublisher(redis)
                try await withCoordinator(redis: slow, configuration: longTTL) { coordinator in
                    let election = try coordinator.election("e")
                    let hasResigned = Flag()
                    let leading = Task {
                        try await election.resign(try await election.campaign())
                        try await election.withLeadership { _ in }
                        hasResigned.set()
                    }
                    defer { slow.mayPublish.set() }
                    try await until("the candidate has led twice", within: .seconds(60)) { hasResigned.isSet }
                    try await leading.value
                }
            }
        }

        @Test("a change that nobody published is noticed by the next poll, on the coordinator's clock")
        func polls() async throws {
            try await withServer { _, redis, other in
                let time = ManualClock()
                var configuration = longTTL
                configuration.pollInterval = .seconds(3600)
                let coordinator = try Coordinator(
                    redis: WithoutSubscriptions(redis: redis), namespace: "default", configuration: configuration,
                    clock: time.clock)
                let seen = Leaders(try coordinator.election("e"))
                try await until("the observer has read, and sleeps until it polls and until it subscribes again") {
                    await seen.last == .some(nil) && time.sleeps == [.seconds(3600), .seconds(3600)]
                }
                try await withCoordinator(redis: other, configuration: longTTL) { node in
                    // The mutex of the election: locking it publishes nothing.
                    let term = try await node.mutex("e").lock()
                    #expect(await seen.last == .some(nil))
                    time.advance(by: .seconds(3600))
                    try await until("the observer knows the leader") { await seen.last??.term == term.fence }
                    try await term.release()
                }
            }
        }
    }
}

/// A Redis that carries out no `PUBLISH` until it may.
private final class SlowPublisher: RedisDecorator {
    let redis: RedisClient
    let mayPublish = Flag()

    init(_ redis: RedisClient) { self.redis = redis }

    func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        while !mayPublish.isSet, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(10)) }
        return try await redis.publish(payload, to: channel)
    }
}

/// A Redis to whose channels nobody can subscribe: a subscription that begins late is a reason to read, too.
private struct WithoutSubscriptions: RedisDecorator {
    let redis: RedisClient

    func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription { throw RedisError(.notPermitted, "the test permits no channel") }
}
