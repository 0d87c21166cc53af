// A client that alters the scripts it sends, to test whether a check notices.
import Foundation
import Hiredis
import Synchronization
import TestSupport

extension String {
    /// A script without comments and line breaks, so that a text in it is found wherever its lines are wrapped.
    var onOneLine: String {
        split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
            .split(separator: " ").joined(separator: " ")
    }
}

/// A client that replaces one text in every script of the engine, which it sends as one line.
final class AlteredRedis: RedisDecorator {
    let redis: RedisClient
    private let safeguard: String
    private let replacement: String
    /// Altered scripts by their original source, because a script loads its hash only once.
    private let altered = Mutex<[String: RedisScript]>([:])
    private let replacements = Atomic(0)

    init(_ redis: RedisClient, _ safeguard: String, without replacement: String) {
        (self.redis, self.safeguard, self.replacement) = (redis, safeguard, replacement)
    }

    /// Whether any script contained the text.
    var hasReplaced: Bool { replacements.load(ordering: .relaxed) > 0 }

    private func alter(_ script: RedisScript) -> RedisScript {
        altered.withLock { altered in
            if let known = altered[script.source] { return known }
            let source = script.source.onOneLine
            let alteredSource = source.replacingOccurrences(of: safeguard, with: replacement)
            if alteredSource != source { replacements.add(1, ordering: .relaxed) }
            let made = RedisScript(alteredSource)
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
