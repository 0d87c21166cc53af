import NIOCore
import Synchronization

/// The connections of a client to one server, or to the master that sentinels name, and the operations
/// that use them.
///
/// A client of a cluster has one for each master.
final class Node: Sendable {
    let configuration: RedisConfiguration
    let instruments: Instruments
    let eventLoop: any EventLoop
    let lanes: LanePool
    let subscriptions: SubscriptionHub
    let link: CommandLink
    let scriptLoads = ScriptLoads()
    /// The functions that keep the connections, each until its task is cancelled.
    let tasks: [@Sendable () async -> Void]

    /// - Throws: `.invalidArgument` for TLS files that cannot be read.
    convenience init(
        _ configuration: RedisConfiguration, eventLoop: any EventLoop, source: (any EndpointSource)? = nil
    ) throws(RedisError) {
        self.init(try Transport(configuration: configuration, eventLoop: eventLoop, source: source))
    }

    init(
        _ transport: Transport, firstCallers: FirstCallers = FirstCallers(), hooks: LinkHooks? = nil
    ) {
        configuration = transport.configuration
        eventLoop = transport.eventLoop
        instruments = Instruments(transport.configuration)
        link = CommandLink(
            transport: transport, instruments: instruments, firstCallers: firstCallers, hooks: hooks)
        lanes = LanePool(transport: transport, instruments: instruments)
        subscriptions = SubscriptionHub(transport: transport, instruments: instruments)
        tasks = [link.run, subscriptions.run, lanes.run] + (transport.source?.tasks ?? [])
    }

    // MARK: Run

    /// Makes and keeps the connections until the task is cancelled.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            for task in tasks { group.addTask { await task() } }
        }
        await stop()
    }

    /// Refuses new commands, and returns when those in flight have their replies.
    func drain() async {
        // Lanes first: elements that interrupted waits have taken are given back on the command connection.
        await lanes.stop(settling: true)
        await link.stop(draining: true)
    }

    /// Fails everything in flight, and closes the connections.
    func stop() async {
        await lanes.stop(settling: false)
        await link.stop(draining: false)
        await subscriptions.stop()
    }

    private let retirement = Atomic<Bool>(false)

    /// Whether the server serves no slot of its cluster any more. Commands that were not sent fail, and
    /// go to another node.
    var isRetired: Bool { retirement.load(ordering: .acquiring) }

    /// Refuses new commands, and closes the connections when those in flight have ended. Blocked commands
    /// have a moment for the server to end them.
    func retire() async {
        retirement.store(true, ordering: .releasing)
        let error = RedisError(.connectionLost, "the server serves no slot of the cluster any more")
        await lanes.retire(after: .seconds(1), error)
        await link.stop(draining: true, error)
        await subscriptions.stop()
    }

    // MARK: Commands

    /// Sends a command of a slot that is being moved to this server.
    func exchangeAsking(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        do throws(RedisError) {
            // In one submission, because ASKING counts for the next command on its connection.
            let reply = try await link.withConnection(timeout: timeout) { connection, remaining in
                await connection.send(pipeline: [["ASKING"], command], timeout: remaining) { late in
                    if let last = late.array?.last { settle?(last) }
                }
            }
            guard let last = reply.array?.last else { throw RedisError(.unexpectedReply, "no reply after ASKING") }
            return try last.orThrow()
        } catch {
            throw error.naming(command.name)
        }
    }

    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        if instruments.isDisabled { return try await exchange(command, timeout: timeout, settle: settle) }
        return try await instruments.measure(command.name) { () async throws(RedisError) in
            try await exchange(command, timeout: timeout, settle: settle)
        }
    }

    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await instruments.measure("PIPELINE", size: commands.count) { () async throws(RedisError) in
            try await exchange(pipeline: commands, timeout: timeout)
        }
    }

    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await instruments.measure("MULTI", size: commands.count) { () async throws(RedisError) in
            let replies = try await exchange(pipeline: [["MULTI"]] + commands + [["EXEC"]], timeout: timeout)
            return try RedisCommand.results(ofTransaction: replies, commands)
        }
    }

    /// Sends one command without counting or tracing it, for operations that consist of several
    /// exchanges.
    func exchange(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)? = nil
    ) async throws(RedisError) -> RESPValue {
        if Task.isCancelled { throw RedisError(.cancelled, "the task was cancelled", command: command.name) }
        do throws(RedisError) {
            // Almost every command takes this path, which avoids the frames and closures of the general path below.
            var failed: RedisConnection?
            if let connection = link.current {
                let amount = timeout.map { TimeAmount($0) } ?? link.commandTimeout
                switch await connection.send(command, timeout: amount, settle: settle) {
                case .success(let reply): return try reply.orThrow()
                case .failure(let error):
                    guard CommandLink.wasNotSent(error, on: connection) else { throw error }
                    failed = connection
                }
            }
            return try await link.withConnection(timeout: timeout, failed: failed) { connection, remaining in
                await connection.send(command, timeout: remaining, settle: settle)
            }.orThrow()
        } catch {
            throw error.naming(command.name)
        }
    }

    func exchange(pipeline commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        let reply = try await link.withConnection(timeout: timeout) { connection, remaining in
            await connection.send(pipeline: commands, timeout: remaining)
        }
        return reply.array ?? []
    }
}

extension RedisCommand {
    /// Returns the results of a transaction from the replies to `MULTI`, the commands and `EXEC`.
    ///
    /// - Throws: the error of a command that could not be queued, which says more than that of `EXEC`.
    static func results(
        ofTransaction replies: [RESPValue], _ commands: [RedisCommand]
    ) throws(RedisError) -> [RESPValue] {
        for (command, reply) in zip(commands, replies.dropFirst()) { _ = try reply.orThrow(command.name) }
        guard let results = try replies.last?.orThrow("EXEC").array else {
            throw RedisError(.unexpectedReply, "EXEC did not return an array", mayHaveRun: true, command: "EXEC")
        }
        return results
    }
}
