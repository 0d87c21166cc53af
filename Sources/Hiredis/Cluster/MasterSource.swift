import NIOConcurrencyHelpers

/// Leads connections for which any master will do, to one of them, and away from a server that is not
/// a master any more.
final class MasterSource: EndpointSource {
    private struct State {
        var masters: Set<RedisConfiguration.Endpoint> = []
        var connections: [RedisConnection] = []
    }

    let requiresMaster = false
    /// The cluster updates it.
    let tasks: [@Sendable () async -> Void] = []
    private let state = NIOLockedValueBox(State())

    func endpoint() async throws(RedisError) -> RedisConfiguration.Endpoint {
        guard let endpoint = state.withLockedValue({ $0.masters.randomElement() }) else {
            throw RedisError(.cannotConnect, "no server of the cluster has answered yet")
        }
        return endpoint
    }

    func watch(_ connection: RedisConnection) throws(RedisError) {
        let isMaster = state.withLockedValue { state in
            guard state.masters.contains(connection.endpoint) else { return false }
            state.connections.removeAll { $0.isClosed }
            state.connections.append(connection)
            return true
        }
        guard !isMaster else { return }
        connection.closeSoon(Self.demoted)
        throw RedisError(.cannotConnect, "the server has ceased to be a master while the client connected")
    }

    /// Closes the connections to all other servers.
    func update(_ masters: Set<RedisConfiguration.Endpoint>) {
        let old = state.withLockedValue { state in
            state.masters = masters
            let old = state.connections.filter { !masters.contains($0.endpoint) }
            state.connections.removeAll { !masters.contains($0.endpoint) || $0.isClosed }
            return old
        }
        for connection in old { connection.closeSoon(Self.demoted) }
    }

    private static var demoted: RedisError { RedisError(.connectionLost, "the server is not a master any more") }
}
