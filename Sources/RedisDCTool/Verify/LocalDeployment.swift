// The private deployments that `redisdc verify --kill` fails over. The only file of the tool that imports RedisDCTesting,
// which starts and kills servers.
import ArgumentParser
import CommandLineTool
import Hiredis
import RedisDCTesting

/// The kind of a private deployment.
enum LocalTopology: String, CaseIterable, ExpressibleByArgument {
    case single, sentinel, cluster
}

/// A private deployment that can be failed over.
protocol LocalDeployment: Sendable {
    var url: String { get }
    /// Makes the deployment fail over once, and returns when it is healthy again.
    ///
    /// - Returns: what was done, in a few words.
    func failOver(_ choices: inout Choices) async throws -> String
}

/// Runs `body` with a private deployment, and stops its servers afterwards.
///
/// - Parameter server: the server program; `nil` for the installed one.
func withLocalDeployment(
    _ topology: LocalTopology, server: String?, _ body: (any LocalDeployment) async throws -> Void
) async throws {
    switch topology {
    case .single:
        // Each write is on disk before it is confirmed, so that a killed server loses nothing.
        let configuration = LocalRedis.Configuration(binary: server, persistence: .appendOnly(fsync: .always))
        try await withLocalRedis(configuration) { try await body(SingleServer(server: $0)) }
    case .sentinel:
        let configuration = LocalSentinel.Configuration(server: LocalRedis.Configuration(binary: server))
        try await withLocalSentinel(configuration) { try await body(SentinelServers(sentinel: $0)) }
    case .cluster:
        let configuration = LocalCluster.Configuration(server: LocalRedis.Configuration(binary: server))
        try await withLocalCluster(configuration) { try await body(ClusterServers(cluster: $0)) }
    }
}

/// One server that is killed and started again with its data.
private struct SingleServer: LocalDeployment {
    let server: LocalRedis

    var url: String { server.url }

    func failOver(_ choices: inout Choices) async throws -> String {
        await server.kill()
        try await Task.sleep(for: choices.milliseconds(0...1000))
        try await server.restart()
        return "killed and restarted"
    }
}

/// A master that is killed, with or without its last writes, or paused, or replaced by the sentinels while it runs.
private struct SentinelServers: LocalDeployment {
    let sentinel: LocalSentinel

    var url: String { sentinel.url }

    func failOver(_ choices: inout Choices) async throws -> String {
        let master = try await sentinel.master()
        let kind: String
        switch Int.random(in: 0..<4, using: &choices) {
        case 0:
            _ = try await sentinel.failover()
            kind = "promoted by command"
        case 1:
            try await master.pause()
            _ = try await sentinel.waitForMaster(otherThan: master)
            try await master.resume()
            kind = "master paused"
        case 2:
            try await master.kill(beforeReplicated: sentinel.replicas(), &choices)
            _ = try await sentinel.waitForMaster(otherThan: master)
            try await master.restart()
            kind = "master killed, its last writes lost"
        default:
            await master.kill()
            _ = try await sentinel.waitForMaster(otherThan: master)
            try await master.restart()
            kind = "master killed"
        }
        try await sentinel.waitUntilHealthy()
        return kind
    }
}

/// A master that is killed, with or without its last writes, or whose replica is promoted while it runs.
private struct ClusterServers: LocalDeployment {
    let cluster: LocalCluster

    var url: String { cluster.url }

    func failOver(_ choices: inout Choices) async throws -> String {
        let master = try await cluster.master(ofSlot: Int.random(in: 0..<16384, using: &choices))
        let replicas = try await cluster.replicas(of: master)
        let kind: String
        switch Int.random(in: 0..<3, using: &choices) {
        case 0:
            guard let replica = replicas.first else {
                throw Failure(.software, "the master on port \(master.port) has no replica")
            }
            try await cluster.promote(replica)
            return "promoted by command"
        case 1:
            try await master.kill(beforeReplicated: replicas, &choices)
            kind = "master killed, its last writes lost"
        default:
            await master.kill()
            kind = "master killed"
        }
        try await cluster.waitUntilHealthy()
        try await master.restart()
        try await cluster.waitUntilHealthy()
        return kind
    }
}

extension LocalRedis {
    /// Kills a master after some writes that it has confirmed and its replicas have not received.
    fileprivate func kill(beforeReplicated replicas: [LocalRedis], _ choices: inout Choices) async throws {
        for replica in replicas { try await replica.pause() }
        // Data in the connection would still arrive; a replica that is paused makes no new connection.
        _ = try await withRedisClient(url: url) { try await $0.send("CLIENT", "KILL", "TYPE", "replica") }
        try await Task.sleep(for: choices.milliseconds(20...300))
        await kill()
        for replica in replicas { try await replica.resume() }
    }
}
