// Commands on ranges of sorted sets: by rank, by score and by the bytes of the members.

extension Command {
    static let rangeCommands = [
        Command("ZRANGE", -4, .first) { server, words throws(RedisError) in
            try server.range(RangeQuery(words, by: nil, isReversed: false))
        },
        Command("ZREVRANGE", -4, .first) { server, words throws(RedisError) in
            try server.range(RangeQuery(words, by: .rank, isReversed: true))
        },
        Command("ZRANGEBYSCORE", -4, .first) { server, words throws(RedisError) in
            try server.range(RangeQuery(words, by: .score, isReversed: false))
        },
        Command("ZREVRANGEBYSCORE", -4, .first) { server, words throws(RedisError) in
            try server.range(RangeQuery(words, by: .score, isReversed: true))
        },
        Command("ZRANGEBYLEX", -4, .first) { server, words throws(RedisError) in
            try server.range(RangeQuery(words, by: .bytes, isReversed: false))
        },
        Command("ZREVRANGEBYLEX", -4, .first) { server, words throws(RedisError) in
            try server.range(RangeQuery(words, by: .bytes, isReversed: true))
        },
        Command("ZCOUNT", 4, .first) { server, words throws(RedisError) in
            let range = try ScoreRange(words[2], words[3])
            let set = try server.read(words[1], as: SortedSet.self)
            return .integer(Int64(set.map { range.places(in: $0).count } ?? 0))
        },
        Command("ZLEXCOUNT", 4, .first) { server, words throws(RedisError) in
            let range = try BytesRange(words[2], words[3])
            let set = try server.read(words[1], as: SortedSet.self)
            return .integer(Int64(set.map { range.places(in: $0).count } ?? 0))
        },
        Command("ZREMRANGEBYRANK", 4, .first, .writes) { server, words throws(RedisError) in
            let range = try IndexRange(words[2], words[3])
            return try server.removeRange(words[1]) { range.places(in: $0.count) }
        },
        Command("ZREMRANGEBYSCORE", 4, .first, .writes) { server, words throws(RedisError) in
            let range = try ScoreRange(words[2], words[3])
            return try server.removeRange(words[1]) { range.places(in: $0) }
        },
        Command("ZREMRANGEBYLEX", 4, .first, .writes) { server, words throws(RedisError) in
            let range = try BytesRange(words[2], words[3])
            return try server.removeRange(words[1]) { range.places(in: $0) }
        },
    ]
}

extension SimulatedRedis {
    fileprivate mutating func removeRange(
        _ key: Bytes, _ places: (SortedSet) -> Range<Int>
    ) throws(RedisError) -> Reply {
        let removed = try update(key, as: SortedSet.self) { set in
            let elements = set.elements(places(set))
            for element in elements { set.remove(element.member) }
            return elements.count
        }
        changes += removed ?? 0
        return .integer(Int64(removed ?? 0))
    }

    fileprivate mutating func range(_ query: RangeQuery) throws(RedisError) -> Reply {
        guard let set = try read(query.key, as: SortedSet.self) else { return .array([]) }
        var elements = set.elements(query.places(in: set))
        if query.isReversed { elements.reverse() }
        var replies: [Reply] = []
        replies.reserveCapacity(elements.count * (query.hasScores ? 2 : 1))
        for element in elements {
            replies.append(.bulk(element.member))
            if query.hasScores { replies.append(.bulk(settings.numberFormat.score(element.score))) }
        }
        return .array(replies)
    }
}

/// The arguments of ZRANGE and the like.
private struct RangeQuery {
    enum Order {
        case rank
        case score
        case bytes
    }

    let key: Bytes
    private(set) var isReversed: Bool
    private(set) var hasScores = false
    private var limit: (offset: Int64, count: Int64)?
    private var ranks: IndexRange?
    private var scores: ScoreRange?
    private var members: BytesRange?

    /// - Parameter order: Nil for ZRANGE, whose options name it.
    init(_ words: [Bytes], by order: Order?, isReversed: Bool) throws(RedisError) {
        key = words[1]
        self.isReversed = isReversed
        var chosen = order
        var rest = words.dropFirst(4)
        while let option = rest.popFirst() {
            if option.isWord("WITHSCORES") {
                hasScores = true
            } else if option.isWord("LIMIT"), rest.count >= 2 {
                limit = (try rest.removeFirst().requireInteger(), try rest.removeFirst().requireInteger())
            } else if order == nil, option.isWord("REV") {
                self.isReversed = true
            } else if order == nil, chosen == nil, option.isWord("BYSCORE") {
                chosen = .score
            } else if order == nil, chosen == nil, option.isWord("BYLEX") {
                chosen = .bytes
            } else {
                throw .syntax
            }
        }
        try check(chosen ?? .rank)
        let (from, to) = self.isReversed && chosen ?? .rank != .rank ? (words[3], words[2]) : (words[2], words[3])
        switch chosen ?? .rank {
        case .rank: ranks = try IndexRange(from, to)
        case .score: scores = try ScoreRange(from, to)
        case .bytes: members = try BytesRange(from, to)
        }
    }

    private func check(_ order: Order) throws(RedisError) {
        // A count of -1 is no limit.
        if let limit, limit.count != -1, order == .rank {
            throw RedisError(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
        }
        if hasScores, order == .bytes {
            throw RedisError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
        }
    }

    /// The places of the elements, from the lowest.
    func places(in set: SortedSet) -> Range<Int> {
        if let ranks {
            let places = ranks.places(in: set.count)
            guard isReversed, !places.isEmpty else { return places }
            return (set.count - places.upperBound)..<(set.count - places.lowerBound)
        }
        let places = scores?.places(in: set) ?? members?.places(in: set) ?? 0..<0
        guard let limit else { return places }
        guard limit.offset >= 0, limit.offset < places.count else { return 0..<0 }
        let offset = Int(limit.offset)
        let count = limit.count < 0 ? places.count - offset : min(Int(clamping: limit.count), places.count - offset)
        if isReversed {
            let end = places.upperBound - offset
            return (end - count)..<end
        }
        return (places.lowerBound + offset)..<(places.lowerBound + offset + count)
    }
}

/// A range of scores. A bound after `(` is not in it.
struct ScoreRange {
    private let lower: (score: Double, isExcluded: Bool)
    private let upper: (score: Double, isExcluded: Bool)

    init(_ lower: Bytes, _ upper: Bytes) throws(RedisError) {
        self.lower = try Self.bound(lower)
        self.upper = try Self.bound(upper)
    }

    private static func bound(_ text: Bytes) throws(RedisError) -> (score: Double, isExcluded: Bool) {
        let isExcluded = text.array.first == UInt8(ascii: "(")
        let digits = isExcluded ? text.printed().array.dropFirst() : text.printed().array[...]
        // Here, and here only, no text is the number 0, and spaces may stand in front.
        let number = Bytes(Array(digits.drop { $0 == UInt8(ascii: " ") }))
        return (digits.isEmpty ? 0 : try number.requireDouble(.rangeNotFloat), isExcluded)
    }

    func places(in set: SortedSet) -> Range<Int> {
        let first = set.countWhile { lower.isExcluded ? $0.score <= lower.score : $0.score < lower.score }
        let end = set.countWhile { upper.isExcluded ? $0.score < upper.score : $0.score <= upper.score }
        return first..<max(first, end)
    }
}

/// A range of members of one score: from `[member`, `(member` or `-`, to one of these or `+`.
struct BytesRange {
    private enum Bound {
        case lowest
        case highest
        case included(Bytes)
        case excluded(Bytes)
    }
    private let lower: Bound
    private let upper: Bound

    init(_ lower: Bytes, _ upper: Bytes) throws(RedisError) {
        self.lower = try Self.bound(lower)
        self.upper = try Self.bound(upper)
    }

    private static func bound(_ text: Bytes) throws(RedisError) -> Bound {
        let member = Bytes(Array(text.array.dropFirst()))
        switch text.array.first {
        case UInt8(ascii: "[")?: return .included(member)
        case UInt8(ascii: "(")?: return .excluded(member)
        case UInt8(ascii: "-")? where member.isEmpty: return .lowest
        case UInt8(ascii: "+")? where member.isEmpty: return .highest
        default: throw .rangeNotLex
        }
    }

    func places(in set: SortedSet) -> Range<Int> {
        let first = set.countWhile { element in
            switch lower {
            case .lowest: false
            case .highest: true
            case .included(let member): element.member < member
            case .excluded(let member): element.member <= member
            }
        }
        let end = set.countWhile { element in
            switch upper {
            case .lowest: false
            case .highest: true
            case .included(let member): element.member <= member
            case .excluded(let member): element.member < member
            }
        }
        return first..<max(first, end)
    }
}
