// Scripts on a single server, with the rule of a cluster's server from which their slot is being moved.
import Foundation
package import Hiredis
import Synchronization
import Testing

/// A client whose scripts run as if their slot were being moved away.
///
/// The server that gives a slot up, key by key, takes a missing key for one that it has moved already. It runs a script
/// only if it has all of its keys. A key that the script then deletes, perhaps with its last element, is missing: the next
/// command that uses it fails, in the middle of the script, and Redis does not undo what the script has written before.
/// So no script may use a key again that it may have deleted. Here, such a command fails in the same way, and the test
/// fails with it.
package final class MovingSlotRedis: RedisDecorator {
    package let redis: RedisClient
    /// Scripts with the rule by their original source, because a script loads its hash only once.
    private let ruled = Mutex<[String: RedisScript]>([:])
    private let scriptsRun = Atomic(0)
    private let alter: @Sendable (String) -> String
    private let onViolation: @Sendable (RedisError) -> Void

    /// - Parameters:
    ///   - alter: changes the source of each script.
    ///   - onViolation: by default, the test fails.
    package init(
        _ redis: RedisClient, alter: @escaping @Sendable (String) -> String = { $0 },
        onViolation: @escaping @Sendable (RedisError) -> Void = { Issue.record($0) }
    ) { (self.redis, self.alter, self.onViolation) = (redis, alter, onViolation) }

    /// The number of scripts that have run.
    package var count: Int { scriptsRun.load(ordering: .relaxed) }

    private func ruled(_ script: RedisScript) -> RedisScript {
        ruled.withLock { ruled in
            if let known = ruled[script.source] { return known }
            let made = RedisScript(movingSlotRule + alter(script.source))
            ruled[script.source] = made
            return made
        }
    }

    private func check(_ error: RedisError) {
        if error.message.contains(violation) { onViolation(error) }
    }

    package func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        do throws(RedisError) {
            let reply = try await redis.script(ruled(script), keys: keys, arguments: arguments, timeout: timeout)
            scriptsRun.add(1, ordering: .relaxed)
            return reply
        } catch {
            check(error)
            throw error
        }
    }

    package func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        redis.post(ruled(script), keys: keys, arguments: arguments, timeout: timeout) { [self] result in
            switch result {
            case .success: scriptsRun.add(1, ordering: .relaxed)
            case .failure(let error): check(error)
            }
            completion(result)
        }
    }
}

private let violation = "a key that the script has deleted"

/// The beginning of every script. It replaces `redis` by a table whose `call` and `pcall` look first whether the key is
/// still there.
private let movingSlotRule = """
    local redis = (function()
      local real, present = redis, {}
      for _, key in ipairs(KEYS) do
        if real.call('EXISTS', key) == 0 then return real end
        present[key] = true
      end
      local function check(name, key)
        if present[key] and real.call('EXISTS', key) == 0 then error(name .. ' of \(violation): ' .. key, 0) end
      end
      return {
        call = function(...) check(...) return real.call(...) end,
        pcall = function(...) check(...) return real.pcall(...) end,
        error_reply = real.error_reply, status_reply = real.status_reply, sha1hex = real.sha1hex, log = real.log,
      }
    end)()

    """
