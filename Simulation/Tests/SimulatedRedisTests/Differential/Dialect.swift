// How servers differ that are equally right: the order of sets, the time that passes, and the texts of some errors.

import SimulatedRedis

/// The rules by which replies are compared with a server of some version.
struct Dialect {
    /// The program and its version, as `redis 7.0`.
    let name: String
    /// The version of Redis with which the server is compatible, as 700 for 7.0.
    let version: Int
    private let isValkey: Bool

    init(of server: RealServer) throws {
        let text = try server.connection.send(["INFO", "server"]).bytes?.text ?? ""
        var values: [Substring: Substring] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { values[parts[0]] = parts[1] }
        }
        let numbers = (values["redis_version"] ?? "7.0").split(separator: ".").compactMap { Int($0) }
        version = numbers[0] * 100 + numbers[1]
        isValkey = values["valkey_version"] != nil
        name = isValkey ? "valkey \(values["valkey_version"] ?? "")" : "redis \(values["redis_version"] ?? "")"
    }

    /// How the server writes numbers.
    var numberFormat: NumberFormat { version >= 702 ? .shortest : .seventeenDigits }

    /// Whether two replies to a command are equal but for what no server promises.
    func isSame(_ command: [Bytes], real: Reply, simulated: Reply) -> Bool {
        if real == simulated { return true }
        let name = command.first?.text.uppercased() ?? ""
        switch (name, real, simulated) {
        case ("PTTL", .integer(let one), .integer(let other)), ("PEXPIRETIME", .integer(let one), .integer(let other)):
            return one > 0 && other > 0 && abs(one - other) < 5000
        case ("TTL", .integer(let one), .integer(let other)): return one > 0 && other > 0 && abs(one - other) <= 5
        case ("HGETALL", _, _), ("HSCAN", _, _), ("HKEYS", _, _), ("HVALS", _, _), ("SMEMBERS", _, _), ("KEYS", _, _),
            ("SCAN", _, _):
            return unordered(real) == unordered(simulated)
        // LPOP with a count.
        case (_, .null, .nullArray), (_, .nullArray, .array([])): return version < 700
        default:
            guard case .error(let one) = real, case .error(let other) = simulated else { return false }
            return isSameError(one, other)
        }
    }

    /// All strings of a reply in one order.
    private func unordered(_ reply: Reply) -> [Reply] {
        func flat(_ reply: Reply) -> [Reply] { reply.elements?.flatMap(flat) ?? [reply] }
        return flat(reply).sorted { "\($0)" < "\($1)" }
    }

    /// Texts of errors were changed in versions other than 7.0; the codes were not.
    private func isSameError(_ one: Bytes, _ other: Bytes) -> Bool {
        guard version != 700 else { return false }
        return one.array.prefix { $0 != 32 } == other.array.prefix { $0 != 32 }
    }
}
