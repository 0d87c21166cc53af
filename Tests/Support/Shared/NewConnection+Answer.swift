package import Hiredis

extension EventLoopRedis {
    /// Runs a script on a connection that no other caller has yet.
    package func answer(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], on connection: NewConnection
    ) async -> Result<RESPValue, RedisError> {
        await withCheckedContinuation { continuation in
            execute {
                connection.post(script, keys: keys, arguments: arguments, timeout: .seconds(60)) { result in
                    continuation.resume(returning: result)
                }
            }
        }
    }
}
