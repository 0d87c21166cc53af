import NIOConcurrencyHelpers
import NIOCore

/// Asks the sentinels for the master, and closes the connections to a server that is not the master
/// any more.
///
/// It keeps connections to each sentinel. It asks all of them before each new connection to the master,
/// when one of them announces a failover, when a connection to one of them was lost, and every ten
/// seconds.
final class SentinelMonitor: EndpointSource {
    private typealias Endpoint = RedisConfiguration.Endpoint
    private typealias Resolution = Task<Result<RedisConfiguration.Endpoint, RedisError>, Never>

    private struct State {
        /// The last master that the sentinels have elected; `nil` when it has been succeeded.
        var master: SentinelElection.Answer?
        var connections: [RedisConnection] = []
        var resolution: Resolution?
    }

    private static let pollInterval = Duration.seconds(10)
    /// How long the last sentinels may take when a majority has answered.
    private static let grace = Duration.milliseconds(100)

    private let name: String
    private let sentinels: [Node]
    private let addressMap: [RedisConfiguration.Endpoint: RedisConfiguration.Endpoint]
    private let questionTimeout: Duration
    private let instruments: Instruments
    private let state = NIOLockedValueBox(State())
    let requiresMaster = true

    init(
        name: String, addresses: [RedisConfiguration.Endpoint], _ configuration: RedisConfiguration,
        eventLoop: any EventLoop, instruments: Instruments
    ) throws(RedisError) {
        self.name = name
        self.instruments = instruments
        addressMap = configuration.addressMap
        questionTimeout = min(configuration.connectTimeout, .seconds(1))
        var sentinels: [Node] = []
        for address in addresses {
            sentinels.append(try Node(.sentinel(at: address, configuration), eventLoop: eventLoop))
        }
        self.sentinels = sentinels
    }

    // MARK: Connections to the master

    /// Returns the address of the master that a majority of the sentinels names now.
    ///
    /// - Throws: `.cannotConnect` when no majority names one.
    func endpoint() async throws(RedisError) -> RedisConfiguration.Endpoint { try await resolve().get() }

    /// Closes the connection when the sentinels name another master.
    ///
    /// - Throws: `.cannotConnect` if they have named another one since the connection was begun. The
    ///   connection is then closed.
    func watch(_ connection: RedisConnection) throws(RedisError) {
        let isCurrent = state.withLockedValue { state in
            guard state.master?.endpoint == connection.endpoint else { return false }
            state.connections.removeAll { $0.isClosed }
            state.connections.append(connection)
            return true
        }
        guard !isCurrent else { return }
        connection.closeSoon(Self.demoted)
        throw RedisError(.cannotConnect, "the master has changed while the client connected")
    }

    private static var demoted: RedisError {
        RedisError(.connectionLost, "the sentinels name another master")
    }

    // MARK: Questions

    /// Asks the sentinels. Callers that come while they are being asked get the same answer.
    private func resolve() async -> Result<RedisConfiguration.Endpoint, RedisError> {
        let resolution = state.withLockedValue { state in
            if let current = state.resolution { return current }
            let task = Resolution {
                let election = await self.ask()
                return self.conclude(election)
            }
            state.resolution = task
            return task
        }
        return await resolution.value
    }

    /// Asks all sentinels at the same time, and returns when all have answered or cannot, or a moment
    /// after a majority has answered.
    private func ask() async -> SentinelElection {
        await withTaskGroup(of: SentinelElection.Answer??.self) { group in
            for sentinel in sentinels { group.addTask { .some(await self.answer(of: sentinel)) } }
            var election = SentinelElection(sentinels: sentinels.count)
            var missing = sentinels.count
            var hasMajority = false
            while missing > 0, let next = await group.next() {
                guard let answer = next else { break }
                missing -= 1
                if let answer { election.add(answer) }
                guard !hasMajority, election.majority != nil else { continue }
                hasMajority = true
                group.addTask {
                    try? await Task.sleep(for: Self.grace)
                    return .none
                }
            }
            group.cancelAll()
            return election
        }
    }

    private func answer(of sentinel: Node) async -> SentinelElection.Answer? {
        let questions = SentinelElection.Answer.questions(name)
        guard let replies = try? await sentinel.pipeline(questions, timeout: questionTimeout),
            var answer = SentinelElection.Answer(replies)
        else { return nil }
        answer.endpoint = addressMap[answer.endpoint] ?? answer.endpoint
        return answer
    }

    /// Closes the connections to a server that has been succeeded.
    ///
    /// Without an answer of a majority the connections stay, unless a sentinel knows a newer
    /// configuration than the one that the connections are based on.
    private func conclude(_ election: SentinelElection) -> Result<RedisConfiguration.Endpoint, RedisError> {
        let (old, isNew) = state.withLockedValue { state in
            state.resolution = nil
            let before = state.master
            if let master = election.master {
                state.master = master
            } else if let newest = election.newest, let known = before, newest.epoch > known.epoch,
                newest.endpoint != known.endpoint
            {
                state.master = nil
            }
            guard state.master?.endpoint != before?.endpoint else { return ([RedisConnection](), false) }
            defer { state.connections = [] }
            return (state.connections, before != nil)
        }
        for connection in old { connection.closeSoon(Self.demoted) }
        guard let master = election.master else { return .failure(undecided(election)) }
        if isNew { instruments.masterChanged() }
        return .success(master.endpoint)
    }

    private func undecided(_ election: SentinelElection) -> RedisError {
        let total = election.sentinels
        let reason =
            election.majority != nil
            ? "one of the sentinels knows of a failover that the others have not confirmed yet"
            : "\(election.answers.count) of \(total) sentinels know the master \"\(name)\", "
                + "and at least \(total / 2 + 1) must name the same server"
        return RedisError(.cannotConnect, "cannot find the master: \(reason)")
    }

    // MARK: Run

    var tasks: [@Sendable () async -> Void] { [run] }

    /// Keeps the connections to the sentinels until the task is cancelled.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            for sentinel in sentinels {
                group.addTask { await sentinel.run() }
                group.addTask { await self.listen(to: sentinel) }
            }
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: Self.pollInterval)
                    _ = await self.resolve()
                }
            }
        }
    }

    /// Asks all sentinels when one of them announces a failover, or may have while it could not be heard.
    private func listen(to sentinel: Node) async {
        while !Task.isCancelled {
            do throws(RedisError) {
                let subscription = try await sentinel.subscribe(to: ["+switch-master"], buffer: .default)
                while try await subscription.next() != nil { _ = await resolve() }
            } catch {
                if error.code == .clientStopped { return }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }
}

extension RedisConfiguration {
    /// Returns the configuration of the connections to one sentinel.
    fileprivate static func sentinel(at address: Endpoint, _ configuration: RedisConfiguration) -> RedisConfiguration {
        var sentinel = configuration
        sentinel.endpoint = address
        sentinel.topology = .single
        sentinel.credentials = configuration.sentinelCredentials
        sentinel.tls = configuration.sentinelTLS
        sentinel.database = 0
        // A sentinel that is back counts for a majority soon.
        sentinel.reconnectDelay = configuration.reconnectDelay.clamped(to: .zero...(.seconds(1)))
        sentinel.instruments = configuration.instruments.logOnly
        return sentinel
    }
}
