// Runs scripts by hash, and loads them where they are missing.
import NIOCore

extension Node {
    /// Runs a script by its hash, and loads it first where it is missing: see
    /// ``Redis/script(_:keys:arguments:timeout:)``.
    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        func command(_ name: RedisArgument, _ script: String) -> RedisCommand {
            RedisCommand(name, script: script, keys: keys, arguments: arguments)
        }
        return try await instruments.measure("EVALSHA") { () async throws(RedisError) in
            if let hash = script.hash {
                do throws(RedisError) {
                    return try await exchange(command("EVALSHA", hash), timeout: timeout)
                } catch {
                    // Without the script nothing has run: loading it and running it again is no second effect.
                    guard error.code == .noScript else { throw error }
                }
            }
            guard let hash = try await load(script, timeout: timeout) else {
                return try await exchange(command("EVAL", script.source), timeout: timeout)
            }
            do throws(RedisError) {
                return try await exchange(command("EVALSHA", hash), timeout: timeout)
            } catch {
                guard error.code == .noScript else { throw error }
                // The cache was flushed in between; EVAL does not need it.
                return try await exchange(command("EVAL", script.source), timeout: timeout)
            }
        }
    }

    /// Loads the script and returns its hash, or `nil` when the user may run scripts but not load
    /// them.
    private func load(_ script: RedisScript, timeout: Duration?) async throws(RedisError) -> String? {
        do throws(RedisError) {
            let reply = try await exchange(["SCRIPT", "LOAD", .string(script.source)], timeout: timeout)
            script.hash = reply.string
            return reply.string
        } catch {
            if error.code == .notPermitted { return nil }
            throw error
        }
    }
}

extension Node {
    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        // The path of almost every script. Every exception takes the path that suspends.
        guard instruments.isDisabled, let hash = script.hash, let connection = link.current else {
            postSuspending(script, keys, arguments, timeout, completion)
            return
        }
        let command = RedisCommand("EVALSHA", script: hash, keys: keys, arguments: arguments)
        let amount = timeout.map { TimeAmount($0) } ?? link.commandTimeout
        connection.post(command, timeout: amount) { result in
            let error: RedisError
            switch result {
            case .success(let reply):
                guard let message = reply.errorMessage else { return completion(result) }
                error = RedisError(serverMessage: message)
                if error.code != .noScript { return completion(.failure(error.naming("EVALSHA"))) }
            case .failure(let failure):
                error = failure
                if !CommandLink.wasNotSent(error, on: connection) {
                    return completion(.failure(error.naming("EVALSHA")))
                }
            }
            // The script has not run.
            self.postSuspending(script, keys, arguments, timeout, completion)
        }
    }

    private func postSuspending(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], _ timeout: Duration?,
        _ completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        Task {
            let result: Result<RESPValue, RedisError>
            do throws(RedisError) {
                result = .success(try await self.script(script, keys: keys, arguments: arguments, timeout: timeout))
            } catch {
                result = .failure(error)
            }
            if eventLoop.inEventLoop { completion(result) } else { eventLoop.execute { completion(result) } }
        }
    }
}

extension RedisCommand {
    /// A command that runs a script, built in one allocation.
    init(_ name: RedisArgument, script: String, keys: [String], arguments: [RedisArgument]) {
        var words: [RedisArgument] = []
        words.reserveCapacity(3 + keys.count + arguments.count)
        words.append(name)
        words.append(.string(script))
        words.append(.integer(keys.count))
        for key in keys { words.append(.string(key)) }
        words += arguments
        self.init(words)
    }
}
