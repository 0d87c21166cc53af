// Runs scripts by hash, and loads them where they are missing.
import NIOCore

extension Node {
    /// Runs a script by its hash, and loads it first where it is missing: see
    /// ``Redis/script(_:keys:arguments:timeout:)``.
    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        func run(_ name: RedisArgument, _ text: String, _ timeout: Duration?) async throws(RedisError) -> RESPValue {
            let command = RedisCommand(
                name, script: text, keys: keys, arguments: arguments, isHeartbeat: script.isHeartbeat)
            return try await exchange(command, timeout: timeout)
        }
        let deadline = NIODeadline.now() + (timeout.map { TimeAmount($0) } ?? link.commandTimeout)
        return try await instruments.measure("EVALSHA") { () async throws(RedisError) in
            let lastLoad = scriptLoads.last(of: script)
            if let hash = script.hash {
                do throws(RedisError) {
                    return try await run("EVALSHA", hash, timeout)
                } catch {
                    // Without the script nothing has run: loading it and running it again is no second effect.
                    guard error.code == .noScript else { throw error }
                }
            }
            if let hash = try await load(script, after: lastLoad, until: deadline) {
                do throws(RedisError) {
                    return try await run("EVALSHA", hash, deadline.left)
                } catch {
                    // The cache was flushed in between; EVAL does not need it.
                    guard error.code == .noScript else { throw error }
                }
            }
            return try await run("EVAL", script.source, deadline.left)
        }
    }

    /// Returns the hash of a script when it has been loaded after the load `last`; `nil` when the user may
    /// run scripts but not load them.
    private func load(
        _ script: RedisScript, after last: UInt64, until deadline: NIODeadline
    ) async throws(RedisError) -> String? {
        while true {
            do throws(RedisError) {
                return try await scriptLoads.hash(of: script, after: last, until: deadline, on: eventLoop) { [link] in
                    link.failure
                } load: { () async throws(RedisError) in
                    try await self.load(script)
                }
            } catch {
                // The load of another caller, whose connection broke or who had less time.
                let isOver = NIODeadline.now() >= deadline
                guard error.code == .connectionLost || error.code == .timedOut, !isOver else { throw error }
            }
        }
    }

    private func load(_ script: RedisScript) async throws(RedisError) -> String? {
        do throws(RedisError) {
            return try await exchange(["SCRIPT", "LOAD", .string(script.source)], timeout: nil).string
        } catch {
            if error.code == .notPermitted { return nil }
            // The script has not run.
            var error = error
            error.mayHaveRun = false
            throw error
        }
    }
}

extension NIODeadline {
    /// The time that is left, 0 when it has passed.
    fileprivate var left: Duration { .nanoseconds(max(0, (self - .now()).nanoseconds)) }
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
        let command = RedisCommand(
            "EVALSHA", script: hash, keys: keys, arguments: arguments, isHeartbeat: script.isHeartbeat)
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
    init(
        _ name: RedisArgument, script: String, keys: [String], arguments: [RedisArgument], isHeartbeat: Bool
    ) {
        var words: [RedisArgument] = []
        words.reserveCapacity(3 + keys.count + arguments.count)
        words.append(name)
        words.append(.string(script))
        words.append(.integer(keys.count))
        for key in keys { words.append(.string(key)) }
        words += arguments
        self.init(words)
        self.isHeartbeat = isHeartbeat
    }
}
