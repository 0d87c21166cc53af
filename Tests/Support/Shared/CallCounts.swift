public import Hiredis

// How often a server has run its commands, those of scripts included.
extension RedisClient {
    /// Returns the number of calls of each command that was called, by its name in lower case, and the number of those that
    /// have failed, by the name and `failed`.
    public func callCounts() async throws -> [String: Int] {
        let stats = try await send("INFO", "commandstats").string ?? ""
        var counts: [String: Int] = [:]
        for line in stats.split(whereSeparator: \.isNewline) where line.hasPrefix("cmdstat_") {
            let parts = line.dropFirst("cmdstat_".count).split(separator: ":calls=")
            counts[String(parts[0])] = parts[1].split(separator: ",").first.flatMap { Int($0) }
            let failed = parts[1].split(separator: ",").first { $0.hasPrefix("failed_calls=") }
            counts["\(parts[0]) failed"] = failed.flatMap { Int($0.dropFirst("failed_calls=".count)) }
        }
        return counts
    }

    /// Returns the number of calls of one command; a subcommand is named as in `script|load`.
    public func calls(of command: String) async throws -> Int {
        var name = command.lowercased()
        // Redis 6.2 counts a command with all of its subcommands.
        if name.contains("|"), !(try await ServerFeatures.has(command: name)) {
            name = String(name.prefix { $0 != "|" })
        }
        return try await callCounts()[name, default: 0]
    }

    /// Returns the number of scripts that were run.
    public func scriptCalls() async throws -> Int { Self.scriptCalls(in: try await callCounts()) }

    /// Returns the number of scripts that were run, of the calls of each command.
    public static func scriptCalls(in counts: [String: Int]) -> Int {
        ["eval", "eval_ro", "evalsha", "evalsha_ro"].reduce(0) { $0 + counts[$1, default: 0] }
    }
}
