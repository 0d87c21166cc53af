// Runs the same commands on a real server and a simulated one, and finds the first difference.

import SimulatedRedis

/// Where two servers differ.
struct Difference: CustomStringConvertible {
    /// The number of commands up to the one that shows it.
    var count: Int
    var what: String
    var real: String
    var simulated: String

    var description: String { "\(what)\n    real:      \(real)\n    simulated: \(simulated)" }
}

/// Two servers that get the same commands.
final class Comparison {
    let real: RealServer
    let dialect: Dialect
    private(set) var compared = 0

    init(_ real: RealServer) throws {
        self.real = real
        dialect = try Dialect(of: real)
    }

    /// A simulated server that is as empty as the real one, with its clock.
    func emptyServers() throws -> SimulatedRedis {
        _ = try real.connection.send(["FLUSHALL"])
        return SimulatedRedis(settings: .init(numberFormat: dialect.numberFormat), now: try real.time())
    }

    /// Runs commands on empty servers. Returns the first difference of the replies, or of the keys at the end.
    func firstDifference(_ commands: [[Bytes]]) throws -> Difference? {
        var simulated = try emptyServers()
        let replies = try real.connection.send(pipeline: commands)
        for (index, command) in commands.enumerated() {
            let reply = simulated.execute(command) ?? .null
            compared += 1
            if !dialect.isSame(command, real: replies[index], simulated: reply) {
                return Difference(
                    count: index + 1, what: command.map(\.description).joined(separator: " "),
                    real: "\(replies[index])", simulated: "\(reply)")
            }
        }
        return try firstDifferenceOfKeys(&simulated).map {
            Difference(count: commands.count, what: $0.what, real: $0.real, simulated: $0.simulated)
        }
    }

    /// Compares all keys.
    func firstDifferenceOfKeys(_ simulated: inout SimulatedRedis) throws -> Difference? {
        let keys = (try real.connection.send(["KEYS", "*"]).elements ?? []).compactMap(\.bytes).sorted()
        simulated.advance(to: try real.time())
        let dump = simulated.dump()
        guard keys == dump.map(\.key) else {
            return Difference(count: 0, what: "keys", real: "\(keys)", simulated: "\(dump.map(\.key))")
        }
        let found = try Self.dump(keys, of: real.connection)
        for (one, other) in zip(found, dump) {
            let (remaining, expected) = (one.remaining, other.remaining)
            let isSameTime = remaining == expected || remaining > 0 && expected > 0 && abs(remaining - expected) < 5000
            if one.type != other.type || one.contents != other.contents || !isSameTime {
                return Difference(count: 0, what: "key \(one.key)", real: "\(one)", simulated: "\(other)")
            }
        }
        return nil
    }

    /// The contents of the keys of a real server, as `SimulatedRedis.dump` lists it.
    static func dump(_ keys: [Bytes], of connection: Connection) throws -> [KeyContents] {
        let types = try connection.send(pipeline: keys.flatMap { [["TYPE", $0], ["PTTL", $0]] })
        var reads: [[Bytes]] = []
        for (index, key) in keys.enumerated() {
            switch types[2 * index].bytes {
            case "list": reads.append(["LRANGE", key, "0", "-1"])
            case "hash": reads.append(["HGETALL", key])
            case "set": reads.append(["SMEMBERS", key])
            case "zset": reads.append(["ZRANGE", key, "0", "-1", "WITHSCORES"])
            default: reads.append(["GET", key])
            }
        }
        let contents = try connection.send(pipeline: reads)
        return keys.indices.map { index in
            let type = types[2 * index].bytes ?? Bytes([])
            return KeyContents(
                key: keys[index], type: type, contents: sorted(contents[index], type),
                remaining: types[2 * index + 1].integer ?? -2)
        }
    }

    private static func sorted(_ reply: Reply, _ type: Bytes) -> [Bytes] {
        if let bytes = reply.bytes { return [bytes] }
        let list = (reply.elements ?? []).compactMap(\.bytes)
        if type == "set" { return list.sorted() }
        guard type == "hash" else { return list }
        let pairs = stride(from: 0, to: list.count - 1, by: 2).map { (list[$0], list[$0 + 1]) }
        return pairs.sorted { $0.0 < $1.0 }.flatMap { [$0.0, $0.1] }
    }
}

/// The content of a key of a real server.
struct KeyContents {
    var key: Bytes
    var type: Bytes
    var contents: [Bytes]
    var remaining: Int64
}

/// Returns the shortest list that still shows a difference, by leaving out parts that do not matter.
func shortened<Element>(_ list: [Element], _ fails: ([Element]) throws -> Bool) rethrows -> [Element] {
    var list = list
    var size = max(1, list.count / 2)
    while true {
        var start = 0
        var isShorter = false
        while start < list.count {
            var candidate = list
            candidate.removeSubrange(start..<min(start + size, list.count))
            if try fails(candidate) {
                list = candidate
                isShorter = true
            } else {
                start += size
            }
        }
        if size == 1, !isShorter { return list }
        if !isShorter { size = max(1, size / 2) }
    }
}
