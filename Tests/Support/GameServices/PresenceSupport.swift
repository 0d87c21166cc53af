// Helpers that the tests of presence share.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices

/// Runs a private server, a client, and two nodes of presence.
func withNodes<Result>(
    configure: (inout PresenceConfiguration) -> Void = { _ in },
    _ body: (_ redis: RedisClient, _ one: Presence, _ other: Presence, LocalRedis) async throws -> Result
) async throws -> Result {
    var configuration = PresenceConfiguration()
    configuration.callTimeout = patience
    configure(&configuration)
    return try await withLocalRedis { server in
        try await withRedisClient(url: server.url) { redis in
            try await withPresence(redis: MovingSlotRedis(redis), configuration: configuration) { one in
                try await withRedisClient(url: server.unixURL) { second in
                    try await withPresence(redis: MovingSlotRedis(second), configuration: configuration) { other in
                        try await body(redis, one, other, server)
                    }
                }
            }
        }
    }
}

/// Follows a bucket in a task of its own, and records what a subscriber would know.
final class Watcher: Sendable {
    struct State: Sendable {
        var objects: [String: PresenceObject] = [:]
        var version = -1
        var isReady = false
        var snapshots = 0
        var gaps = 0
        var leaves: [PresenceLeave] = []
        var puts: [String] = []
        var faults: [String] = []
    }
    private let box = Locked(State())
    private let task = Locked<Task<Void, Never>?>(nil)

    var state: State { box.withLock { $0 } }

    /// Begins to follow, and returns after the first snapshot.
    static func start(_ bucket: PresenceBucket, after position: PresencePosition? = nil) async throws -> Watcher {
        let watcher = Watcher()
        let task = Task {
            do {
                for try await event in bucket.changes(after: position) { watcher.receive(event) }
            } catch {
                watcher.box.withLock {
                    if (error as? GameServiceError)?.code != .cancelled, (error as? GameServiceError)?.code != .stopped
                    {
                        $0.faults.append("\(error)")
                    }
                }
            }
        }
        watcher.task.withLock { $0 = task }
        if position == nil { try await watcher.until("the first snapshot arrives") { $0.isReady } }
        return watcher
    }

    private func receive(_ event: PresenceEvent) {
        box.withLock { state in
            switch event {
            case .gap: state.gaps += 1
            case .snapshot(let snapshot):
                state.objects = Dictionary(uniqueKeysWithValues: snapshot.objects.map { ($0.key, $0) })
                state.version = snapshot.position.version
                state.isReady = true
                state.snapshots += 1
            case .change(let change):
                if state.version >= 0, change.version != state.version + 1 {
                    state.faults.append("version \(change.version) after \(state.version)")
                }
                state.version = change.version
                switch change.kind {
                case .put(let object, let isNew):
                    if state.isReady, isNew != (state.objects[object.key] == nil) {
                        state.faults.append("\(object.key) is new: \(isNew)")
                    }
                    state.objects[object.key] = object
                    state.puts.append(object.key)
                case .left(let leave):
                    if state.objects.removeValue(forKey: leave.key) == nil, state.isReady {
                        state.faults.append("\(leave.key) left without being there")
                    }
                    state.leaves.append(leave)
                }
            }
        }
    }

    /// Waits until it has seen a condition.
    func until(_ what: String, _ condition: @Sendable (State) -> Bool) async throws {
        try await TestSupport.until(what) { condition(state) }
    }

    func stop() async {
        let task = task.withLock { $0 }
        task?.cancel()
        await task?.value
    }

    deinit { task.withLock { $0?.cancel() } }
}

/// Returns the code of the error that `body` throws, if it is a `GameServiceError`.
func code(_ body: () async throws -> Void) async -> GameServiceError.Code? {
    do {
        try await body()
        return nil
    } catch { return (error as? GameServiceError)?.code }
}
