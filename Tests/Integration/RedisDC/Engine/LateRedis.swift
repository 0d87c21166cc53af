// A client whose requests arrive a second time, late.
import Foundation
import Hiredis
import Synchronization
import TestSupport

@testable import RedisDC

/// A client that loses the first attempt of every request of the engine, as with a connection that breaks, and keeps a
/// copy of it: what is still on its way to the server, which ``deliver(to:of:_:)`` lets arrive.
///
/// Heartbeats and the requests of a shutdown, which are not repeated, are sent as they are. Copies of them are kept too.
final class LateRedis: RedisDecorator {
    private struct Copy {
        var script: RedisScript
        var keys: [String]
        var arguments: [RedisArgument]
    }
    private struct Request: Hashable {
        var source: String
        var arguments: [RedisArgument]

        init(_ script: RedisScript, _ arguments: [RedisArgument]) {
            source = script.source
            // The last fence that the cohort has used may be another one with the retry.
            self.arguments = source == Scripts.extendFences.source ? arguments.dropLast() : arguments
        }
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

    /// Lets the copies arrive, the oldest first. They arrive again with the next call.
    ///
    /// - Parameters:
    ///   - scripts: the sources of the scripts whose copies arrive; all by default.
    ///   - inspect: called after each copy with what it was.
    func deliver(
        to server: RedisClient, of scripts: (String) -> Bool = { _ in true },
        _ inspect: (String) async throws -> Void
    ) async throws {
        for copy in state.withLock({ $0.copies }) where scripts(copy.script.source) {
            // An error is an answer that nobody reads.
            _ = try? await server.script(copy.script, keys: copy.keys, arguments: copy.arguments)
            try await inspect("\(copy.arguments) of a script with \(copy.script.source.suffix(200))")
        }
    }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let request = Request(script, arguments)
        let isFirst = keepCopy(script, keys, arguments) && script.source != Scripts.heartbeat.source
        guard !isFirst else {
            state.withLock { _ = $0.unanswered.insert(request) }
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

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        if script.source == Scripts.join.source, !sources.contains(script.source) {
            _ = keepCopy(script, keys, arguments)
            throw RedisError(.connectionLost, "the connection was lost", mayHaveRun: true)
        }
        _ = keepCopy(script, keys, arguments)
        return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    /// Keeps a copy of a request, and returns whether it is the first attempt.
    private func keepCopy(_ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument]) -> Bool {
        state.withLock { state in
            let isFirst = state.known.insert(Request(script, arguments)).inserted
            if isFirst { state.copies.append(Copy(script: script, keys: keys, arguments: arguments)) }
            return isFirst
        }
    }
}
