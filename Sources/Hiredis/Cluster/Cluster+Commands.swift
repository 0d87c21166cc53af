// The operations of a client, on the masters of the keys' slots.
import NIOCore

extension Cluster {
    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        if instruments.isDisabled { return try await exchange(command, timeout, settle) }
        return try await instruments.measure(command.name) { () async throws(RedisError) in
            try await exchange(command, timeout, settle)
        }
    }

    private func exchange(
        _ command: RedisCommand, _ timeout: Duration?, _ settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async throws(RedisError) -> RESPValue {
        let slot = try slot(of: command)
        var attempts = Attempts(deadline: deadline(timeout))
        return try await routed(slot, &attempts) { node, asking, left throws(RedisError) in
            asking
                ? try await node.exchangeAsking(command, timeout: left, settle: settle)
                : try await node.exchange(command, timeout: left, settle: settle)
        }
    }

    /// Returns the slot of a command's first key; `nil` when any master can run the command.
    ///
    /// - Throws: `.invalidArgument` when the command concerns one server.
    func slot(of command: RedisCommand) throws(RedisError) -> Int? {
        switch command.destination {
        case .slot(let slot): return slot
        case .anyServer: return nil
        case .oneServer:
            throw RedisError(
                .invalidArgument,
                "\(command.name) has no key and concerns one server of the cluster; "
                    + "choose it from RedisClient.masters()", command: command.name)
        }
    }

    /// Runs commands that must all be in one slot.
    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        var slot: Int?
        for command in commands {
            guard let other = try self.slot(of: command) else { continue }
            guard slot == nil || slot == other else {
                throw RedisError(
                    .invalidArgument,
                    "the keys of a transaction must be in one slot of the cluster; "
                        + "give them the same hash tag, as in {user:7}:name", command: "MULTI")
            }
            slot = other
        }
        return try await instruments.measure("MULTI", size: commands.count) { [slot] () async throws(RedisError) in
            var attempts = Attempts(deadline: deadline(timeout))
            return try await routed(slot, &attempts) { node, asking, left throws(RedisError) in
                // ASKING would count for MULTI only. The commands can run when the slot has been moved.
                if asking { throw RedisError(serverMessage: "TRYAGAIN the slot of the transaction is being moved") }
                return try await node.transaction(commands, timeout: left)
            }
        }
    }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await instruments.measure("EVALSHA") { () async throws(RedisError) in
            var attempts = Attempts(deadline: deadline(timeout))
            return try await routed(keys.first.map { HashSlot.of($0) }, &attempts) {
                node, asking, left throws(RedisError) in
                guard asking else {
                    return try await node.script(script, keys: keys, arguments: arguments, timeout: left)
                }
                // ASKING counts for one command, so the script must not have to be loaded first.
                let command = RedisCommand(
                    "EVAL", script: script.source, keys: keys, arguments: arguments, isHeartbeat: script.isHeartbeat)
                return try await node.exchangeAsking(command, timeout: left, settle: nil)
            }
        }
    }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let end = deadline(timeout)
        // The path of almost every script. Every exception takes the path that suspends.
        guard instruments.isDisabled, let node = try? currentNode(for: keys.first.map { HashSlot.of($0) }),
            node.link.current != nil
        else {
            postSuspending(script, keys, arguments, Attempts(deadline: end).left, completion)
            return
        }
        node.post(script, keys: keys, arguments: arguments, timeout: timeout ?? configuration.commandTimeout) {
            result in
            guard case .failure(let error) = result else { return completion(result) }
            if error.refusal != nil || node.isRetired && !error.mayHaveRun {
                // The script has not run.
                self.postSuspending(script, keys, arguments, Attempts(deadline: end).left, completion)
            } else {
                if error.code == .timedOut { self.linkFailed() }
                completion(result)
            }
        }
    }

    private func postSuspending(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], _ timeout: Duration,
        _ completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        Task {
            let result: Result<RESPValue, RedisError>
            do throws(RedisError) {
                result = .success(try await self.script(script, keys: keys, arguments: arguments, timeout: timeout))
            } catch {
                result = .failure(error)
            }
            eventLoop.execute { completion(result) }
        }
    }

    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? {
        if let timeout, timeout < .zero {
            throw RedisError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        let slot = try slot(of: command.complete(serverTimeout: nil))
        return try await instruments.measure(command.command.name) { () async throws(RedisError) -> RESPValue? in
            var attempts = Attempts(deadline: timeout.map { NIODeadline.now() + TimeAmount($0) } ?? .distantFuture)
            return try await routed(slot, &attempts) { node, asking, left throws(RedisError) in
                try await node.block(command, timeout: timeout.map { _ in left }, asking: asking, giveBack: giveBack)
            }
        }
    }

    func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError) -> Subscription
    {
        let subscription = Subscription(
            queue: try SubscriptionQueue(validating: buffer), source: ClusterSubscriptionSource(cluster: self))
        try await subscription.subscribe(to: topics)
        return subscription
    }
}
