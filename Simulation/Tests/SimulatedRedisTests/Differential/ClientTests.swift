// Clients that subscribe, wait for elements and run transactions receive the same on a real server and a simulated one.

import SimulatedRedis
import Testing

@Suite("Clients, compared with a real server") struct ClientTests {
    @Test("waiting and subscribed clients receive the same, in the same order", .timeLimit(.minutes(2)))
    func randomClients() throws {
        let seed = SeededGenerator.seedOfRun
        try RealServer.with { server in
            // The texts of errors and the times at which a waiting client notices a change are those of 7.0.
            guard try Dialect(of: server).version == 700 else { return }
            var sent = 0
            for episode in 0..<300 {
                _ = try server.connection.send(["FLUSHALL"])
                var run = try ClientRun(server, seed: seed &+ UInt64(episode))
                for _ in 0..<100 {
                    sent += 1
                    if let difference = try run.step() {
                        Issue.record("seed \(seed):\n\(run.log.joined(separator: "\n"))\n\(difference)")
                        return
                    }
                }
            }
            print("\(sent) commands of clients, seed \(seed)")
        }
    }
}

/// Several clients of two servers.
private struct ClientRun {
    private let server: RealServer
    private var random: SeededGenerator
    private var simulated = SimulatedRedis()
    private var connections: [(real: Connection, simulated: ClientID)] = []
    private(set) var log: [String] = []
    private var isSubscribed: Set<ClientID> = []
    private var inTransaction: Set<ClientID> = []
    private var numbers: [ClientID: Bytes] = [:]

    init(_ server: RealServer, seed: UInt64) throws {
        self.server = server
        random = SeededGenerator(seed: seed)
        for _ in 0..<5 {
            let client = simulated.connect()
            let connection = try server.connect()
            numbers[client] = Bytes("\(try connection.send(["CLIENT", "ID"]).integer ?? 0)")
            connections.append((connection, client))
        }
    }

    /// Sends a random command by a client that does not wait. Returns a difference of what all clients receive.
    mutating func step() throws -> String? {
        let idle = connections.filter { !simulated.waitingClients.contains($0.simulated) }
        guard !idle.isEmpty else { return nil }
        let (connection, client) = random.pick(idle)
        var command = command(client)
        log.append("    \(client.number): " + command.map { "\"\($0)\"" }.joined(separator: " "))
        let reply = simulated.execute(command, from: client)
        if command[0] == "CLIENT",
            let target = connections.first(where: { Bytes("\($0.simulated.number)") == command[2] })
        {
            command[2] = numbers[target.simulated] ?? "0"
        }
        try connection.write(command)
        // The reply comes before what others have caused, and the confirmations of a subscription are no reply.
        if let reply {
            let real = try? connection.readReply()
            if real != reply { return "real: \(real ?? .null)\nsimulated: \(reply)" }
        }
        // A command without a reply may still be on its way to the real server, and be overtaken.
        while reply == nil, try server.waitingClients() != simulated.waitingClients.count {}
        for delivery in simulated.takeDeliveries() {
            guard let receiver = connections.first(where: { $0.simulated == delivery.client }) else { continue }
            let real = try? receiver.real.readReply()
            if real != delivery.reply {
                return "\(delivery.client.number) receives\nreal: \(real ?? .null)\nsimulated: \(delivery.reply)"
            }
        }
        return nil
    }

    private mutating func command(_ client: ClientID) -> [Bytes] {
        let list: Bytes = random.pick(["l1", "l2"])
        let channel: Bytes = random.pick(["c1", "c2"])
        // A client that waits for messages can do little else.
        if isSubscribed.contains(client) {
            if random.chance(70) { isSubscribed.remove(client) }
            return isSubscribed.contains(client) ? ["SUBSCRIBE", channel] : ["UNSUBSCRIBE", "c3", "c1", "c2"]
        }
        let script: Bytes =
            "redis.call('RPUSH', KEYS[1], 'x', 'y') redis.call('LPOP', KEYS[1]) return redis.call('LLEN', KEYS[1])"
        switch Int.random(in: 0..<20, using: &random) {
        case ..<3 where simulated.waitingClients.count < 3: return ["BLPOP", "l1", "l2", "100"]
        case ..<5 where simulated.waitingClients.count < 3: return ["BRPOP", list, "0"]
        case ..<9: return ["RPUSH", list, "a", "b"]
        case ..<11: return ["LPUSH", list, "c"]
        case 11: return ["EVAL", script, "1", list]
        case 12 where !inTransaction.contains(client):
            isSubscribed.insert(client)
            return ["SUBSCRIBE", channel, "c3"]
        case ..<16: return ["PUBLISH", channel, "message"]
        case 16:
            inTransaction.insert(client)
            return ["MULTI"]
        case 17:
            if random.chance(20) { return ["NOSUCH"] }
            inTransaction.remove(client)
            return [random.chance(70) ? "EXEC" : "DISCARD"]
        case 18: return ["SET", list, "text"]
        default:
            let target = Bytes("\(Int.random(in: 1...5, using: &random))")
            return random.chance(50)
                ? ["CLIENT", "UNBLOCK", target, random.pick(["TIMEOUT", "ERROR"])] : ["DEL", list]
        }
    }
}
