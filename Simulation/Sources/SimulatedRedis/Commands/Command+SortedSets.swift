// Commands on sorted sets: adding, removing, scores and ranks.

extension Command {
    static let sortedSetCommands = [
        Command("ZADD", -4, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.addScores(ScoreChange(words))
        },
        Command("ZINCRBY", 4, .first, [.writes, .needsMemory]) { server, words throws(RedisError) in
            try server.addScores(ScoreChange(incrementing: words[3], by: words[2], of: words[1]))
        },
        Command("ZREM", -3, .first, .writes) { server, words throws(RedisError) in
            let removed = try server.update(words[1], as: SortedSet.self) { set in
                words.dropFirst(2).count { set.remove($0) }
            }
            server.changes += removed ?? 0
            return .integer(Int64(removed ?? 0))
        },
        Command("ZCARD", 2, .first) { server, words throws(RedisError) in
            .integer(Int64(try server.read(words[1], as: SortedSet.self)?.count ?? 0))
        },
        Command("ZSCORE", 3, .first) { server, words throws(RedisError) in
            let score = try server.read(words[1], as: SortedSet.self)?.score(of: words[2])
            return score.map { .bulk(server.settings.numberFormat.score($0)) } ?? .null
        },
        Command("ZRANK", 3, .first) { server, words throws(RedisError) in
            let rank = try server.read(words[1], as: SortedSet.self)?.rank(of: words[2])
            return rank.map { .integer(Int64($0)) } ?? .null
        },
        Command("ZREVRANK", 3, .first) { server, words throws(RedisError) in
            guard let set = try server.read(words[1], as: SortedSet.self), let rank = set.rank(of: words[2]) else {
                return .null
            }
            return .integer(Int64(set.count - 1 - rank))
        },
    ]
}

/// The arguments of ZADD, or of ZINCRBY.
private struct ScoreChange {
    let key: Bytes
    private(set) var elements: [ScoredMember] = []
    private(set) var onlyNew = false
    private(set) var onlyExisting = false
    private(set) var onlyGreater = false
    private(set) var onlyLess = false
    private(set) var countsChanged = false
    private(set) var isIncrement = false

    init(incrementing member: Bytes, by number: Bytes, of key: Bytes) throws(RedisError) {
        self.key = key
        isIncrement = true
        elements = [ScoredMember(score: try number.requireDouble(), member: member)]
    }

    init(_ words: [Bytes]) throws(RedisError) {
        key = words[1]
        var rest = words.dropFirst(2)
        while let option = rest.first, read(option) { rest.removeFirst() }
        guard !rest.isEmpty, rest.count % 2 == 0 else { throw .syntax }
        if onlyNew, onlyExisting {
            throw RedisError("ERR XX and NX options at the same time are not compatible")
        }
        if onlyGreater && onlyNew || onlyLess && onlyNew || onlyGreater && onlyLess {
            throw RedisError("ERR GT, LT, and/or NX options at the same time are not compatible")
        }
        if isIncrement, rest.count > 2 {
            throw RedisError("ERR INCR option supports a single increment-element pair")
        }
        while let score = rest.popFirst(), let member = rest.popFirst() {
            elements.append(ScoredMember(score: try score.requireDouble(), member: member))
        }
    }

    private mutating func read(_ option: Bytes) -> Bool {
        if option.isWord("NX") {
            onlyNew = true
        } else if option.isWord("XX") {
            onlyExisting = true
        } else if option.isWord("GT") {
            onlyGreater = true
        } else if option.isWord("LT") {
            onlyLess = true
        } else if option.isWord("CH") {
            countsChanged = true
        } else if option.isWord("INCR") {
            isIncrement = true
        } else {
            return false
        }
        return true
    }

    /// Returns the score that a member gets, or nil if it keeps what it has.
    func score(for element: ScoredMember, over old: Double?) throws(RedisError) -> Double? {
        guard let old else { return onlyExisting ? nil : element.score }
        if onlyNew { return nil }
        let score = isIncrement ? old + element.score : element.score
        if score.isNaN { throw RedisError("ERR resulting score is not a number (NaN)") }
        if onlyGreater && score <= old || onlyLess && score >= old { return nil }
        return score
    }
}

extension SimulatedRedis {
    fileprivate mutating func addScores(_ change: ScoreChange) throws(RedisError) -> Reply {
        let counts = try update(change.key, as: SortedSet.self, isCreated: !change.onlyExisting) {
            set throws(RedisError) in
            var added = 0
            var changed = 0
            var last: Double?
            for element in change.elements {
                let old = set.score(of: element.member)
                last = try change.score(for: element, over: old)
                guard let score = last else { continue }
                if old == nil { added += 1 }
                if old != score { changed += 1 }
                // A small set keeps whole numbers as integers, which have no negative zero.
                set.set(element.member, score + 0)
            }
            return (added: added, changed: changed, last: last)
        }
        changes += counts?.changed ?? 0
        if change.isIncrement {
            return counts?.last.map { .bulk(settings.numberFormat.score($0)) } ?? .null
        }
        return .integer(Int64((change.countsChanged ? counts?.changed : counts?.added) ?? 0))
    }
}
