import Hiredis
import TestSupport
import Testing

@testable import RedisDCTesting
@testable import RedisDCTestingTestSupport

@Suite("LocalCluster: a cluster of masters and replicas")
struct LocalClusterTests {
    @Test("all slots are served by three masters with a replica each when start returns")
    func start() async throws {
        try await withLocalCluster(.init(nodeTimeout: .seconds(20))) { cluster in
            #expect(cluster.nodes.count == 6)
            try await #expect(ports(cluster.masters()) == cluster.nodes.prefix(3).map(\.port))
            try await #expect(ports(cluster.replicas()) == cluster.nodes.suffix(3).map(\.port))
            try await #expect(ports(cluster.replicas(of: cluster.nodes[1])) == [cluster.nodes[4].port])
            // CRC16 of "foo" modulo 16384 is 12182.
            try await #expect(cluster.master(ofKey: "foo").port == cluster.nodes[2].port)
            try await #expect(cluster.master(ofSlot: 12182).port == cluster.nodes[2].port)
            try await #expect(cluster.nodes[2].send("SET", "foo", "bar").string == "OK")
            await #expect {
                try await cluster.nodes[0].send("SET", "foo", "bar")
            } throws: {
                ($0 as? RedisError)?.message == "MOVED 12182 127.0.0.1:\(cluster.nodes[2].port)"
            }
        }
    }

    @Test("the replica of a killed master is promoted, and the master follows it when it is back")
    func kill() async throws {
        try await withLocalCluster { cluster in
            let old = cluster.nodes[0]
            await old.kill()
            try await cluster.waitUntilHealthy()
            try await #expect(cluster.master(ofSlot: 0).port == cluster.nodes[3].port)
            try await old.restart()
            try await cluster.waitUntilHealthy()
            try await #expect(ports(cluster.replicas(of: cluster.nodes[3])) == [old.port])
        }
    }

    @Test("promote makes a replica the master, and all nodes know it then")
    func promote() async throws {
        try await withLocalCluster(.init(nodeTimeout: .seconds(20))) { cluster in
            for replica in [cluster.nodes[4], cluster.nodes[1]] {
                try await cluster.promote(replica)
                let second = try await cluster.masters()[1]
                #expect(second === replica)
                // A node that takes the former master for a master does not vote for it when it shall be one again.
                for node in cluster.nodes {
                    let known = try await node.send("CLUSTER", "NODES").string ?? ""
                    #expect(known.split(whereSeparator: \.isNewline).count { $0.contains("slave") } == 3)
                }
            }
        }
    }

    @Test("a separated master is replaced while clients of its port still reach it, and follows the new one then")
    func separate() async throws {
        try await withLocalCluster(.init(isSplittable: true)) { cluster in
            let (old, replica) = (cluster.nodes[2], cluster.nodes[5])
            try await cluster.separate(old)
            try await cluster.waitUntilPromoted(replica)
            try await until("the master counts itself as separated") {
                try await old.send("CLUSTER", "INFO").string?.contains("cluster_state:fail") == true
            }
            try await #expect(old.send("ROLE").array?.first?.string == "master")
            try await until("the others agree about the new master") {
                try await cluster.nodes[0].send("CLUSTER", "SLOTS").array?.contains { range in
                    range.array?[2].array?[1].integer == cluster.announcedPort(of: replica)
                } == true
            }
            try await #expect(replica.send("SET", "foo", "after").string == "OK")
            try await cluster.reunite(old)
            try await cluster.waitUntilHealthy()
            let replicas = try await cluster.replicas(of: replica)
            #expect(replicas.count == 1 && replicas[0] === old)
            // Slots move between nodes with proxies.
            try await cluster.move(slots: [12182], to: cluster.nodes[0])
            try await #expect(cluster.nodes[0].send("GET", "foo").string == "after")
        }
    }

    @Test("only nodes with proxies can be separated")
    func separateWithoutProxies() async throws {
        try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
            let error = await #expect(throws: LocalRedisError.self) { try await cluster.separate(cluster.nodes[0]) }
            #expect(error?.code == .notHealthy)
        }
    }

    @Test("slots are moved with their keys")
    func move() async throws { try await move(by: .classic) }

    @Test("slots are moved atomically with their keys", .needs(command: "cluster|migrateslots"))
    func moveAtomically() async throws { try await move(by: .atomic) }

    private func move(by way: SlotMove) async throws {
        try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
            for index in 0..<250 { _ = try await cluster.nodes[2].send("SET", "{foo}\(index)", .integer(index)) }
            try await cluster.move(slots: [12180, 12181, 12182], to: cluster.nodes[0], by: way)
            for slot in 12180...12182 { try await #expect(cluster.master(ofSlot: slot).port == cluster.nodes[0].port) }
            try await #expect(cluster.master(ofSlot: 12183).port == cluster.nodes[2].port)
            try await #expect(cluster.nodes[0].send("DBSIZE").integer == 250)
            try await #expect(cluster.nodes[2].send("DBSIZE").integer == 0)
            try await #expect(cluster.nodes[0].send("GET", "{foo}249").string == "249")
        }
    }

    @Test("a slot that is being moved is answered with ASK for keys that have been migrated")
    func ask() async throws {
        try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
            let (source, target) = (cluster.nodes[2], cluster.nodes[0])
            for key in ["{foo}1", "{foo}2"] { _ = try await source.send("SET", .string(key), "value") }
            try await cluster.beginMove(slot: 12182, from: source, to: target)
            try await cluster.migrate(key: "{foo}1", from: source, to: target)
            await #expect {
                try await source.send("GET", "{foo}1")
            } throws: {
                ($0 as? RedisError)?.message == "ASK 12182 127.0.0.1:\(target.port)"
            }
            try await #expect(source.send("GET", "{foo}2").string == "value")
            try await cluster.finishMove(slot: 12182, from: source, to: target)
            try await #expect(target.send("GET", "{foo}2").string == "value")
        }
    }

    @Test("nodes with a password replicate, fail over and move slots")
    func password() async throws {
        try await withLocalCluster(.init(server: .init(password: "secret"), nodeTimeout: .seconds(20))) { cluster in
            _ = try await cluster.nodes[2].send("SET", "foo", "bar")
            try await cluster.promote(cluster.nodes[5])
            try await cluster.move(slots: [12182], to: cluster.nodes[0])
            try await #expect(cluster.nodes[0].send("GET", "foo").string == "bar")
            #expect(cluster.url.hasPrefix("redis-cluster://:secret@127.0.0.1:"))
        }
    }

    @Test("nodes with a password move slots atomically", .needs(command: "cluster|migrateslots"))
    func passwordAtomically() async throws {
        try await withLocalCluster(
            .init(
                server: .init(password: "secret"), replicasPerMaster: 0, nodeTimeout: .seconds(20))
        ) { cluster in
            _ = try await cluster.nodes[2].send("SET", "foo", "bar")
            try await cluster.moveAtomically(slots: [12182], to: cluster.nodes[0])
            try await #expect(cluster.nodes[0].send("GET", "foo").string == "bar")
        }
    }

    @Test("all processes have ended when stop returns")
    func stop() async throws {
        let cluster = try await LocalCluster.start(.init(replicasPerMaster: 0))
        let processes = cluster.nodes.compactMap(\.processID)
        #expect(processes.count == 3)
        await cluster.stop()
        #expect(processes.allSatisfy { !processExists($0) })
    }
}
