public import Hiredis

/// One run of one problem: its name, its keys, and its log in Redis.
public struct Run: Sendable {
    /// The name, which is also the namespace of the run's primitives.
    public let name: String
    /// The number of processes.
    public let processes: Int
    /// The number of rounds of each process.
    public let rounds: Int

    /// Creates a run.
    public init(name: String, processes: Int, rounds: Int) {
        (self.name, self.processes, self.rounds) = (name, processes, rounds)
    }

    /// Returns a key of the run.
    public func key(_ what: String) -> String { "book:{\(name):0}:\(what)" }

    /// Ignores the entries of dead processes, which may reach Redis after the record of the death.
    private static let append = RedisScript(
        """
        -- KEYS[1] log  KEYS[2] lives  KEYS[3] scoreboard
        -- ARGV[1] player  ARGV[2] its life  ARGV[3] its action  ARGV[4...] fields and values, '' removes a field
        if (redis.call('HGET', KEYS[2], ARGV[1]) or '1') ~= ARGV[2] then return 0 end
        for i = 4, #ARGV, 2 do
            if ARGV[i + 1] == '' then
                redis.call('HDEL', KEYS[3], ARGV[i])
            else
                redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
                redis.call('EXPIRE', KEYS[3], 3600)
            end
        end
        local now = redis.call('TIME')
        redis.call('EXPIRE', KEYS[1], 3600)
        local stamp = string.format('%d', now[1] * 1000000 + now[2])
        return redis.call('RPUSH', KEYS[1], stamp .. ' ' .. ARGV[1] .. ' ' .. ARGV[3])
        """)

    private static let appendDeath = RedisScript(
        """
        -- KEYS[1] log  KEYS[2] lives   ARGV[1] player  ARGV[2] its next life  ARGV[3] the event
        redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
        redis.call('EXPIRE', KEYS[2], 3600)
        local now = redis.call('TIME')
        local stamp = string.format('%d', now[1] * 1000000 + now[2])
        return redis.call('RPUSH', KEYS[1], stamp .. ' ' .. ARGV[1] .. ' ' .. ARGV[3])
        """)

    /// Appends an entry to the log, unless the player's life has been recorded as dead.
    ///
    /// - Parameters:
    ///   - action: the event, the number and the note.
    ///   - player: the name of the player.
    ///   - life: 1, plus 1 for each death.
    ///   - redis: the client.
    ///   - scoreboard: the key of a scoreboard.
    ///   - changes: fields of the scoreboard to set in the same step; `nil` removes a field.
    public func write(
        _ action: String, by player: String, life: Int, _ redis: any Redis, changing scoreboard: String? = nil,
        _ changes: [String: String?] = [:]
    ) async throws {
        _ = try await redis.script(
            Self.append, keys: [key("log"), key("lives"), scoreboard ?? key("no scoreboard")],
            arguments: [.string(player), .integer(life), .string(action)]
                + changes.flatMap { [.string($0.key), .string($0.value ?? "")] })
    }

    /// Returns the place of each player.
    public func places(_ redis: any Redis) async throws -> [String: String] {
        let fields = (try await redis.send("HGETALL", .string(key("places"))).array ?? []).compactMap(\.string)
        return Dictionary(
            uniqueKeysWithValues: stride(from: 0, to: fields.count - 1, by: 2).map { (fields[$0], fields[$0 + 1]) })
    }

    /// Records the death of a player whose process has certainly ended. Entries of that life are
    /// ignored from then on.
    public func recordDeath(of player: String, nextLife: Int, _ redis: any Redis) async throws {
        _ = try await redis.script(
            Self.appendDeath, keys: [key("log"), key("lives")],
            arguments: [.string(player), .integer(nextLife), .string(Entry.killed)])
    }

    /// Returns the entries of the log from a line on.
    public func read(from line: Int = 0, _ redis: any Redis) async throws -> [Entry] {
        let reply = try await redis.send("LRANGE", .string(key("log")), .integer(line), -1)
        return (reply.array ?? []).compactMap { element in
            let words = (element.string ?? "").split(separator: " ", maxSplits: 1)
            return words.count == 2 ? Entry(words[1], time: Int(words[0]) ?? 0) : nil
        }
    }

    /// Deletes all keys of the run. Call this when all its processes have ended.
    public func cleanUp(_ redis: any Redis) async throws {
        var cursor = "0"
        repeat {
            let reply = try await redis.send(
                "SCAN", .string(cursor), "MATCH", .string("*:{\(name):0}:*"), "COUNT", 1000)
            cursor = reply.array?.first?.string ?? "0"
            let keys = (reply.array?.last?.array ?? []).compactMap(\.string)
            if !keys.isEmpty { _ = try await redis.send(RedisCommand([.string("DEL")] + keys.map { .string($0) })) }
        } while cursor != "0"
    }
}
