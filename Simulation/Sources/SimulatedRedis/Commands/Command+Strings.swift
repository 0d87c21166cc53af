// Commands on strings.

extension Command {
    static let stringCommands = [
        Command("GET", 2, .first) { server, words throws(RedisError) in
            try server.string(words[1]).map { .bulk($0) } ?? .null
        },
        Command("SET", -3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.set(words)
        },
        Command("SETNX", 3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            guard server.find(words[1]) == nil else { return .integer(0) }
            server.setString(words[1], words[2])
            return .integer(1)
        },
        Command("STRLEN", 2, .first) { server, words throws(RedisError) in
            .integer(Int64(try server.string(words[1])?.count ?? 0))
        },
        Command("APPEND", 3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            let text = (try server.string(words[1]) ?? Bytes([])) + words[2]
            server.setString(words[1], text, keepsExpiry: true)
            return .integer(Int64(text.count))
        },
        Command("INCR", 2, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.increment(words[1], by: 1)
        },
        Command("DECR", 2, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.increment(words[1], by: -1)
        },
        Command("INCRBY", 3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.increment(words[1], by: words[2].requireInteger())
        },
        Command("DECRBY", 3, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            let number = try words[2].requireInteger()
            guard number != .min else { throw RedisError("ERR decrement would overflow") }
            return try server.increment(words[1], by: -number)
        },
    ]
}

extension SimulatedRedis {
    /// Sets a string, and the time at which it expires.
    mutating func setString(_ key: Bytes, _ value: Bytes, expires: Int64? = nil, keepsExpiry: Bool = false) {
        changes += 1
        if keepsExpiry, let index = find(key) {
            entries.values[index].value = .string(value)
        } else {
            entries[key] = Entry(value: .string(value), expires: expires)
        }
    }

    fileprivate mutating func increment(_ key: Bytes, by number: Int64) throws(RedisError) -> Reply {
        let old = try string(key)?.requireInteger() ?? 0
        let (sum, isTooLarge) = old.addingReportingOverflow(number)
        if isTooLarge { throw .overflow }
        setString(key, Bytes(sum), keepsExpiry: true)
        return .integer(sum)
    }

    fileprivate mutating func set(_ words: [Bytes]) throws(RedisError) -> Reply {
        let options = try SetOptions(words.dropFirst(3))
        let expires = try options.expiry(now: nowInMilliseconds)
        let key = words[1]
        var old: Bytes?
        if options.replacesReply { old = try string(key) }
        let reply = options.replacesReply ? old.map { Reply.bulk($0) } ?? .null : .ok
        if options.onlyNew || options.onlyExisting {
            let exists = find(key) != nil
            if exists == options.onlyNew { return options.replacesReply ? reply : .null }
        }
        setString(key, words[2], expires: expires, keepsExpiry: options.keepsExpiry)
        if let expires { rewritten = [["SET", key, words[2], "PXAT", Bytes(expires)]] }
        return reply
    }
}

/// The options of SET.
private struct SetOptions {
    private(set) var onlyNew = false
    private(set) var onlyExisting = false
    private(set) var keepsExpiry = false
    private(set) var replacesReply = false
    private var time: (value: Bytes, unit: Int64, isRelative: Bool)?

    init(_ options: ArraySlice<Bytes>) throws(RedisError) {
        var options = options
        while let option = options.popFirst() {
            if option.isWord("NX"), !onlyExisting {
                onlyNew = true
            } else if option.isWord("XX"), !onlyNew {
                onlyExisting = true
            } else if option.isWord("GET") {
                replacesReply = true
            } else if option.isWord("KEEPTTL"), time == nil {
                keepsExpiry = true
            } else if !keepsExpiry, time == nil, let kind = Self.timeKind(option), let value = options.popFirst() {
                time = (value, kind.unit, kind.isRelative)
            } else {
                throw .syntax
            }
        }
    }

    private static func timeKind(_ option: Bytes) -> (unit: Int64, isRelative: Bool)? {
        if option.isWord("EX") { return (1000, true) }
        if option.isWord("PX") { return (1, true) }
        if option.isWord("EXAT") { return (1000, false) }
        if option.isWord("PXAT") { return (1, false) }
        return nil
    }

    /// The time at which the key expires.
    func expiry(now: Int64) throws(RedisError) -> Int64? {
        guard let time else { return nil }
        let number = try time.value.requireInteger()
        let (scaled, isTooLarge) = number.multipliedReportingOverflow(by: time.unit)
        let (sum, isTooLate) = scaled.addingReportingOverflow(time.isRelative ? now : 0)
        if number <= 0 || isTooLarge || isTooLate { throw .invalidExpiry("set") }
        return sum
    }
}
