// The surroundings of each example of the documentation: a private server, clients of it, and a record of what the
// example has done with the names of Surroundings.swift.
import GameServices
import Hiredis
import QueueListen
import RedisDC
import RedisDCTesting
import Synchronization
import Testing

/// One function of the generated file, which contains an example.
struct Example: Sendable, CustomTestStringConvertible {
    /// The file, and the ordinal number of the example in it.
    var place: String
    var run: @Sendable () async throws -> Void

    var testDescription: String { place }
}

final class World: Sendable {
    /// The world of the example that the current task runs.
    @TaskLocal static var bound: World?
    /// The number of this copy of the example, if several run at the same time.
    @TaskLocal static var party = 0

    static var current: World {
        guard let bound else { fatalError("an example was called outside of a world") }
        return bound
    }

    let server: LocalRedis
    let redis: RedisClient
    let coordinator: Coordinator
    let office: PostOffice
    let lobby: PresenceBucket
    let mailbox: Mailbox
    let mutex: DistributedMutex
    let election: Election
    let stock = Stock()

    private struct State {
        var calls: [String] = []
        var turns: [Int: Int] = [:]
        var cursor: Cursor?
    }
    private let state = Mutex(State())

    private init(
        _ server: LocalRedis, _ redis: RedisClient, _ coordinator: Coordinator, _ office: PostOffice,
        _ presence: Presence
    ) throws {
        self.server = server
        self.redis = redis
        self.coordinator = coordinator
        self.office = office
        lobby = try presence.bucket("lobby")
        mailbox = try office.mailbox("alice")
        mutex = try coordinator.mutex("kitchen")
        election = try coordinator.election("scheduler")
    }

    static func with(_ body: (World) async throws -> Void) async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                try await withCoordinator(redis: redis) { coordinator in
                    try await withPostOffice(redis: redis) { office in
                        var configuration = PresenceConfiguration()
                        configuration.ttl = .seconds(1)
                        try await withPresence(redis: redis, configuration: configuration) { presence in
                            let world = try World(server, redis, coordinator, office, presence)
                            try await $bound.withValue(world) { try await body(world) }
                        }
                    }
                }
            }
        }
    }

    var cursor: Cursor? {
        get { state.withLock { $0.cursor } }
        set { state.withLock { $0.cursor = newValue } }
    }

    var calls: [String] { state.withLock { $0.calls } }

    /// Records that the example has called a function of Surroundings.swift.
    func note(_ call: String) { state.withLock { $0.calls.append(call) } }

    /// Whether the example has made a call that begins with a text.
    func hasCalled(_ call: String) -> Bool { calls.contains { $0.hasPrefix(call) } }

    /// Waits until the example has made a call that begins with a text.
    func waitFor(_ call: String) async throws {
        while !hasCalled(call) { try await Task.sleep(for: .milliseconds(5)) }
    }

    /// Waits until a claim waits in the queue of a resource.
    func waitForWaiter(of resource: String) async throws {
        while try await coordinator.inspect(resource)?.waiters.isEmpty ?? true {
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Whether this copy of the example has another turn: each has two.
    func hasTurn() -> Bool {
        state.withLock { state in
            state.turns[Self.party, default: 0] += 1
            return state.turns[Self.party, default: 0] <= 2
        }
    }
}
