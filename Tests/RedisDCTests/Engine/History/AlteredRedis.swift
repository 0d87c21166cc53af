// A Redis that runs other scripts than it was asked to: to see whether a check notices.
import Foundation
import Hiredis
import Synchronization
import TestSupport

/// Replaces one text in every script of the engine on its way to the server.
final class AlteredRedis: RedisDecorator {
    let redis: RedisClient
    private let guardian: String
    private let without: String
    /// By source: a script learns its hash once.
    private let altered = Mutex<[String: RedisScript]>([:])
    private let replacements = Atomic(0)

    init(_ redis: RedisClient, _ guardian: String, without: String) {
        (self.redis, self.guardian, self.without) = (redis, guardian, without)
    }

    /// Whether any script had the text in it.
    var hasReplaced: Bool { replacements.load(ordering: .relaxed) > 0 }

    private func alter(_ script: RedisScript) -> RedisScript {
        altered.withLock { altered in
            if let known = altered[script.source] { return known }
            let source = script.source.replacingOccurrences(of: guardian, with: without)
            if source != script.source { replacements.add(1, ordering: .relaxed) }
            let made = RedisScript(source)
            altered[script.source] = made
            return made
        }
    }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await redis.script(alter(script), keys: keys, arguments: arguments, timeout: timeout)
    }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) { redis.post(alter(script), keys: keys, arguments: arguments, timeout: timeout, completion: completion) }
}
