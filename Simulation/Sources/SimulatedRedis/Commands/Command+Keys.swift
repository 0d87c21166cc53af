// Commands on keys of any type: existence, type, expiry, listing.

extension Command {
    static let keyCommands = [
        Command("DEL", -2, .all, .writes) { server, words throws(RedisError) in server.deleteAll(words.dropFirst()) },
        Command("UNLINK", -2, .all, .writes) { server, words throws(RedisError) in server.deleteAll(words.dropFirst())
        },
        Command("EXISTS", -2, .all) { server, words throws(RedisError) in
            .integer(Int64(words.dropFirst().count { server.find($0) != nil }))
        },
        Command("TYPE", 2, .first) { server, words throws(RedisError) in
            .status(server.value(of: words[1])?.typeName ?? "none")
        },
        Command("EXPIRE", -3, .first, .writes) { server, words throws(RedisError) in
            try server.expire(words, "expire", unit: 1000, isRelative: true)
        },
        Command("PEXPIRE", -3, .first, .writes) { server, words throws(RedisError) in
            try server.expire(words, "pexpire", unit: 1, isRelative: true)
        },
        Command("EXPIREAT", -3, .first, .writes) { server, words throws(RedisError) in
            try server.expire(words, "expireat", unit: 1000, isRelative: false)
        },
        Command("PEXPIREAT", -3, .first, .writes) { server, words throws(RedisError) in
            try server.expire(words, "pexpireat", unit: 1, isRelative: false)
        },
        Command("PERSIST", 2, .first, .writes) { server, words throws(RedisError) in
            guard let index = server.find(words[1]), server.entries.values[index].expires != nil else {
                return .integer(0)
            }
            server.entries.values[index].expires = nil
            server.changes += 1
            return .integer(1)
        },
        Command("PTTL", 2, .first) { server, words throws(RedisError) in
            .integer(server.remaining(words[1]))
        },
        Command("TTL", 2, .first) { server, words throws(RedisError) in
            let remaining = server.remaining(words[1])
            return .integer(remaining < 0 ? remaining : (remaining + 500) / 1000)
        },
        Command("PEXPIRETIME", 2, .first) { server, words throws(RedisError) in
            guard let index = server.find(words[1]) else { return .integer(-2) }
            return .integer(server.entries.values[index].expires ?? -1)
        },
        Command("DBSIZE", 1, .none) { server, _ throws(RedisError) in .integer(Int64(server.liveKeys.count)) },
        Command("FLUSHALL", -1, .none, .writes) { server, words throws(RedisError) in try server.flush(words) },
        Command("FLUSHDB", -1, .none, .writes) { server, words throws(RedisError) in try server.flush(words) },
        Command("KEYS", 2, .none) { server, words throws(RedisError) in
            let pattern = Pattern(words[1])
            return .bulks(server.liveKeys.filter { pattern.matches($0) })
        },
        Command("SCAN", -2, .none) { server, words throws(RedisError) in try server.scan(words) },
    ]
}

extension SimulatedRedis {
    fileprivate mutating func deleteAll(_ keys: ArraySlice<Bytes>) -> Reply {
        .integer(Int64(keys.count { delete($0) }))
    }

    /// The milliseconds until a key expires, -1 if it does not, and -2 if it does not exist.
    fileprivate mutating func remaining(_ key: Bytes) -> Int64 {
        guard let index = find(key) else { return -2 }
        return entries.values[index].expires.map { max(0, $0 - nowInMilliseconds) } ?? -1
    }

    fileprivate mutating func flush(_ words: [Bytes]) throws(RedisError) -> Reply {
        guard words.count == 1 || words.count == 2 && (words[1].isWord("ASYNC") || words[1].isWord("SYNC")) else {
            throw .syntax
        }
        entries = [:]
        changes += 1
        return .ok
    }

    fileprivate mutating func expire(
        _ words: [Bytes], _ name: String, unit: Int64, isRelative: Bool
    ) throws(RedisError) -> Reply {
        let key = words[1]
        let condition = try ExpiryCondition(words.dropFirst(3))
        let number = try words[2].requireInteger()
        let (scaled, isTooLarge) = number.multipliedReportingOverflow(by: unit)
        let (time, isTooLate) = scaled.addingReportingOverflow(isRelative ? nowInMilliseconds : 0)
        if isTooLarge || isTooLate { throw .invalidExpiry(name) }
        guard let index = find(key) else { return .integer(0) }
        guard condition.allows(time, over: entries.values[index].expires) else { return .integer(0) }
        changes += 1
        if time <= nowInMilliseconds, replication.role == .master, !replication.isApplying {
            entries.remove(at: index)
            rewritten = [["DEL", key]]
        } else {
            entries.values[index].expires = time
            rewritten = [["PEXPIREAT", key, Bytes(time)]]
        }
        return .integer(1)
    }

    /// The keys that exist, in the order of SCAN.
    var liveKeys: [Bytes] {
        entries.filter { !isExpired($0.value) }.map { ScanPlace(of: $0.key) }.sorted().map(\.name)
    }

    fileprivate func scan(_ words: [Bytes]) throws(RedisError) -> Reply {
        let scan = try Scan(cursor: words[1], options: words.dropFirst(2), takesType: true)
        let type = scan.type
        let (names, cursor) = scan.page(of: entries.lazy.filter { !isExpired($0.value) }.map(\.key))
        let found = names.filter { type == nil || entries[$0]?.value.typeName == type }
        return .array([.bulk(cursor), .bulks(found)])
    }
}

/// The condition of EXPIRE: NX, XX, GT and LT.
private struct ExpiryCondition {
    private var onlyWithout = false
    private var onlyWith = false
    private var onlyLater = false
    private var onlyEarlier = false

    init(_ options: ArraySlice<Bytes>) throws(RedisError) {
        for option in options {
            if option.isWord("NX") {
                onlyWithout = true
            } else if option.isWord("XX") {
                onlyWith = true
            } else if option.isWord("GT") {
                onlyLater = true
            } else if option.isWord("LT") {
                onlyEarlier = true
            } else {
                throw RedisError("ERR Unsupported option " + option.printed())
            }
        }
        if onlyWithout, onlyWith || onlyLater || onlyEarlier {
            throw RedisError("ERR NX and XX, GT or LT options at the same time are not compatible")
        }
        if onlyLater, onlyEarlier { throw RedisError("ERR GT and LT options at the same time are not compatible") }
    }

    /// Whether a time replaces that of a key. A key without a time expires latest.
    func allows(_ time: Int64, over old: Int64?) -> Bool {
        if onlyWithout, old != nil { return false }
        if onlyWith, old == nil { return false }
        if onlyLater, time <= old ?? .max { return false }
        if onlyEarlier, let old, time >= old { return false }
        return true
    }
}
