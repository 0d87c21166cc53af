// Cuts a pipeline by server, and puts the replies together in the order of the commands.
import NIOCore

extension Cluster {
    /// Sends each command to the master of its slot, and returns the replies in the order of the commands.
    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        var slots: [Int?] = []
        for command in commands { slots.append(try slot(of: command)) }
        return try await instruments.measure("PIPELINE", size: commands.count) { [slots] () async throws(RedisError) in
            try await send(commands, slots, Attempts(deadline: deadline(timeout)))
        }
    }

    /// The commands of a pipeline for one node, by their positions.
    private struct Part {
        var node: Node
        var positions: [Int]
    }

    private func send(
        _ commands: [RedisCommand], _ slots: [Int?], _ attempts: Attempts
    ) async throws(RedisError) -> [RESPValue] {
        var replies = [RESPValue?](repeating: nil, count: commands.count)
        var pending = Array(commands.indices)
        while !pending.isEmpty {
            let parts = try await parts(pending, slots, attempts)
            pending = []
            var refused: [(position: Int, error: RedisError, node: Node)] = []
            for (part, result) in await exchange(parts, commands, attempts.left) {
                switch result {
                case .success(let values):
                    for (position, reply) in zip(part.positions, values) {
                        if let error = reply.errorMessage.map({ RedisError(serverMessage: $0) }), error.refusal != nil {
                            refused.append((position, error, part.node))
                        } else {
                            replies[position] = reply
                        }
                    }
                case .failure(var error):
                    let hasNotRun = !error.mayHaveRun && error.code != .cancelled && error.code != .timedOut
                    if part.node.isRetired, hasNotRun, !attempts.isOver {
                        pending += part.positions
                    } else {
                        if error.code == .timedOut { linkFailed() }
                        // Other commands of the pipeline have run, if there are any.
                        error.mayHaveRun = error.mayHaveRun || parts.count > 1 || replies.contains { $0 != nil }
                        throw error
                    }
                }
            }
            for (position, error, node) in refused.sorted(by: { $0.position < $1.position }) {
                replies[position] = try await again(commands[position], slots[position], error, node, attempts)
            }
            pending.sort()
        }
        return replies.map { $0 ?? .null }
    }

    /// Repeats one command that was refused, after those before it. An error of the server is its reply.
    private func again(
        _ command: RedisCommand, _ slot: Int?, _ error: RedisError, _ node: Node, _ attempts: Attempts
    ) async throws(RedisError) -> RESPValue {
        var attempts = attempts
        var reply = RESPValue.error(error.message)
        do throws(RedisError) {
            try await recover(from: error, node, &attempts)
            return try await routed(slot, &attempts) { node, asking, left throws(RedisError) in
                do throws(RedisError) {
                    return asking
                        ? try await node.exchangeAsking(command, timeout: left, settle: nil)
                        : try await node.exchange(command, timeout: left)
                } catch {
                    if error.isReply { reply = .error(error.message) }
                    throw error
                }
            }
        } catch {
            if error.isReply { return reply }
            var error = error
            error.mayHaveRun = true
            throw error
        }
    }

    private func parts(
        _ positions: [Int], _ slots: [Int?], _ attempts: Attempts
    ) async throws(RedisError) -> [Part] {
        var parts: [Part] = []
        var indexes: [ObjectIdentifier: Int] = [:]
        // Commands without a key go to one node, if possible to that of the others.
        var anyNode: Node?
        if let slot = slots.lazy.compactMap({ $0 }).first { anyNode = try await node(for: slot, attempts) }
        for position in positions {
            let node: Node
            if let slot = slots[position] {
                node = try await self.node(for: slot, attempts)
            } else if let anyNode {
                node = anyNode
            } else {
                node = try await self.node(for: nil, attempts)
                anyNode = node
            }
            if let index = indexes[ObjectIdentifier(node)] {
                parts[index].positions.append(position)
            } else {
                indexes[ObjectIdentifier(node)] = parts.count
                parts.append(Part(node: node, positions: [position]))
            }
        }
        return parts
    }

    private func exchange(
        _ parts: [Part], _ commands: [RedisCommand], _ timeout: Duration
    ) async -> [(Part, Result<[RESPValue], RedisError>)] {
        func exchange(_ part: Part) async -> Result<[RESPValue], RedisError> {
            do throws(RedisError) {
                return .success(
                    try await part.node.exchange(pipeline: part.positions.map { commands[$0] }, timeout: timeout))
            } catch {
                return .failure(error)
            }
        }
        if parts.count == 1 { return [(parts[0], await exchange(parts[0]))] }
        return await withTaskGroup(of: (Int, Result<[RESPValue], RedisError>).self) { group in
            for (index, part) in parts.enumerated() { group.addTask { (index, await exchange(part)) } }
            return await group.reduce(into: []) { $0.append((parts[$1.0], $1.1)) }
        }
    }
}

extension RedisError {
    /// Whether it is the error reply of a server.
    fileprivate var isReply: Bool {
        switch code {
        case .connectionLost, .timedOut, .cancelled, .clientStopped, .cannotConnect, .invalidArgument, .unexpectedReply,
            .replyTooLarge, .protocolViolation:
            false
        default: true
        }
    }
}
