// A client whose requests arrive a second time, late.
import Foundation
import Hiredis
import Synchronization
import TestSupport

@testable import RedisDC

/// A client that loses the first attempt of every request of the engine, as with a connection that breaks, and keeps a
/// copy of it: what is still on its way to the server, which ``deliver()`` lets arrive.
///
/// The requests of a heartbeat are sent as they are. They extend the session, whenever they arrive.
final class LateRedis: RedisDecorator {
    private struct Copy {
        var script: RedisScript
        var keys: [String]
        var arguments: [RedisArgument]
    }
    private struct Request: Hashable {
        var source: String
        var arguments: [RedisArgument]
    }
    private struct State {
        var copies: [Copy] = []
        var known: Set<Request> = []
        var unanswered: Set<Request> = []
    }

    let redis: RedisClient
    private let state = Mutex(State())

    init(_ redis: RedisClient) { self.redis = redis }

    /// Whether all requests have been answered.
    var isIdle: Bool { state.withLock { $0.unanswered.isEmpty } }

    /// The sources of the scripts of which a copy is kept.
    var sources: Set<String> { state.withLock { Set($0.copies.map(\.script.source)) } }

    /// Lets all copies arrive, the oldest first. They arrive again with the next call.
    ///
    /// - Parameter inspect: called after each copy with what it was.
    func deliver(to server: RedisClient, _ inspect: (String) async throws -> Void) async throws {
        for copy in state.withLock({ $0.copies }) {
            // An error is an answer that nobody reads.
            _ = try? await server.script(copy.script, keys: copy.keys, arguments: copy.arguments)
            try await inspect("\(copy.arguments) of a script with \(copy.script.source.suffix(200))")
        }
    }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let request = Request(source: script.source, arguments: arguments)
        let isFirst = state.withLock { state in
            guard script.source != Scripts.heartbeat.source, state.known.insert(request).inserted else { return false }
            state.copies.append(Copy(script: script, keys: keys, arguments: arguments))
            state.unanswered.insert(request)
            return true
        }
        guard !isFirst else {
            let lost = RedisError(.connectionLost, "the connection was lost", mayHaveRun: true)
            // After the caller has returned.
            Task { redis.execute { completion(.failure(lost)) } }
            return
        }
        redis.post(script, keys: keys, arguments: arguments, timeout: timeout) { [self] result in
            completion(result)
            if case .failure(let error) = result, error.isTransient { return }
            state.withLock { _ = $0.unanswered.remove(request) }
        }
    }
}
