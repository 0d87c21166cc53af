// Random commands: plausible ones mostly, and some with missing arguments, wrong types and bad numbers.

import SimulatedRedis

/// Makes random commands from a seed.
struct CommandGenerator {
    private var random: SeededGenerator
    /// The time at which the commands are executed, in milliseconds.
    private let now: Int64
    private let templates: [String]
    private let isOld: Bool

    /// - Parameter version: That of Redis, as 700 for 7.0: options that came later are left out.
    init(seed: UInt64, now: Int64, version: Int) {
        random = SeededGenerator(seed: seed)
        self.now = now
        isOld = version < 700
        templates = version >= 700 ? Self.templates : Self.templates.map(Self.withoutNewOptions)
    }

    /// Before 7.0, EXPIRE had no conditions, and SET could not reply the old value with NX.
    private static func withoutNewOptions(_ template: String) -> String {
        guard template.contains("EXPIRE") || template.contains("[GET]") else { return template }
        return template.split(separator: " ").filter { !$0.hasPrefix("[") }.joined(separator: " ")
    }

    mutating func commands(_ count: Int) -> [[Bytes]] { (0..<count).map { _ in command() } }

    mutating func command() -> [Bytes] {
        let template = random.pick(templates)
        var words = template.split(separator: " ").flatMap { expand(String($0)) }
        // Another last word would be a timeout, perhaps an endless one, or an option that some versions lack.
        if !template.hasSuffix("timeout") {
            if random.chance(2), words.count > 1 { words.remove(at: Int.random(in: 1..<words.count, using: &random)) }
            if random.chance(1), !template.contains("EXPIRE") { words.append(member()) }
        }
        if random.chance(5) { words[0] = Bytes(words[0].text.lowercased()) }
        return words
    }

    /// Words of commands. Those with a capital letter and lower-case ones stand for what `expand` makes; in brackets, for
    /// what is there half of the time; with a star, for several.
    private static let templates: [String] = [
        "GET kS", "SET kS value", "SET kS value [NX|XX] [GET] [@ttl]", "SET kS value @ttl [NX|XX]",
        "SET kS value [KEEPTTL]", "SETNX kS value", "STRLEN kS", "APPEND kS value", "INCR kS", "DECR kS",
        "INCRBY kS int", "DECRBY kS int", "SET kS int",
        "DEL k*", "UNLINK k", "EXISTS k*", "TYPE k", "TYPE k", "PTTL k", "TTL k", "PERSIST k", "DBSIZE", "KEYS pattern",
        "SCAN 0 COUNT 1000 [@match]", "EXPIRE k seconds [NX|XX|GT|LT] [NX|XX|GT|LT]", "PEXPIRE k ms [NX|XX|GT|LT]",
        "PEXPIREAT k msAt [NX|XX|GT|LT]", "EXPIREAT k secondsAt",
        "HSET kH member value", "HSET kH pair*", "HSETNX kH member value", "HGET kH member", "HGET kH member",
        "HMGET kH member*", "HDEL kH member*", "HLEN kH", "HEXISTS kH member", "HSTRLEN kH member", "HGETALL kH",
        "HKEYS kH", "HVALS kH", "HINCRBY kH member int", "HSET kH member int", "HSCAN kH 0 COUNT 1000 [@match]",
        "LPUSH kL member*", "RPUSH kL member*", "LPUSH kL member", "RPUSH kL member", "LPOP kL", "RPOP kL",
        "LPOP kL [count]", "RPOP kL [count]", "LLEN kL", "LINDEX kL index", "LRANGE kL index index",
        "LSET kL place member", "LTRIM kL index index", "BLPOP kL timeout", "BRPOP kL kL timeout",
        "SADD kT member*", "SREM kT member*", "SCARD kT", "SISMEMBER kT member", "SMEMBERS kT",
        "ZADD kZ score member", "ZADD kZ scored*", "ZADD kX zero member", "ZADD kX zeroed*",
        "ZADD kX zeroed*", "ZREM kX member", "ZCARD kX",
        "ZADD kZ [NX|XX] [GT|LT] [CH] [INCR] score member", "ZADD kZ [NX|XX|GT|LT] [CH] scored*",
        "ZINCRBY kZ score member", "ZREM kZ member*", "ZCARD kZ", "ZSCORE kZ member", "ZRANK kZ member",
        "ZREVRANK kZ member", "ZRANGE kZ index index [WITHSCORES]", "ZREVRANGE kZ index index [WITHSCORES]",
        "ZRANGEBYSCORE kZ bound bound [WITHSCORES] [@limit]", "ZREVRANGEBYSCORE kZ bound bound [WITHSCORES] [@limit]",
        "ZRANGEBYLEX kX lex lex [@limit]", "ZREVRANGEBYLEX kX lex lex [@limit]", "ZCOUNT kZ bound bound",
        "ZLEXCOUNT kX lex lex", "ZREMRANGEBYRANK kZ index index", "ZREMRANGEBYSCORE kZ bound bound",
        "ZREMRANGEBYLEX kX lex lex", "ZRANGE kZ bound bound BYSCORE [REV] [WITHSCORES] [@limit]",
        "ZRANGE kX lex lex BYLEX [REV] [@limit]", "ZRANGE kX small small [REV] [BYSCORE|BYLEX] [@limit]",
        "ECHO value", "PING", "SELECT 0", "ECHO value extra", "FLUSHALL", "NOSUCH value value",
    ]

    private mutating func expand(_ word: String) -> [Bytes] {
        if word.hasPrefix("[") {
            guard random.chance(40) else { return [] }
            return expand(random.pick(word.dropFirst().dropLast().split(separator: "|").map(String.init)))
        }
        if word.hasSuffix("*") {
            let single = String(word.dropLast())
            return (0..<Int.random(in: 1...4, using: &random)).flatMap { _ in expand(single) }
        }
        switch word {
        case "k", "kS", "kH", "kL", "kT", "kZ", "kX": return [key(word)]
        case "pair": return [member(), value()]
        case "scored": return [score(), member()]
        case "zeroed": return ["0", member()]
        case "zero": return ["0"]
        case "member", "extra": return [member()]
        case "value": return [value()]
        case "@ttl": return [random.pick(["EX", "PX", "ex"]), random.chance(90) ? large() : lifetime()]
        case "@match": return ["MATCH", pattern()]
        case "@limit": return ["LIMIT", small(), small()]
        case "pattern": return [pattern()]
        case "FLUSHALL": return [random.chance(5) ? "FLUSHALL" : "PING"]
        default: return [numeric(word)]
        }
    }

    private mutating func numeric(_ word: String) -> Bytes {
        switch word {
        case "int": random.chance(80) ? small() : isOld ? random.pick(["abc", "1.5", "01"]) : number()
        // Before 7.0, a count of 0 replied that there is no list.
        case "count": random.chance(90) ? Bytes(Int64.random(in: (isOld ? 1 : 0)...3, using: &random)) : "-1"
        case "index": random.chance(92) ? small() : number()
        // Newer servers take the low 32 bits of a large one.
        case "place": random.chance(92) ? small() : random.pick(["abc", "1.5", Bytes([])])
        case "small": small()
        case "score": score()
        case "bound": (random.chance(30) ? "(" : "") + score()
        case "lex": lex()
        case "seconds", "ms": random.chance(80) ? large() : lifetime()
        case "msAt": random.chance(90) ? Bytes(now + Int64.random(in: 100_000...900_000, using: &random)) : lifetime()
        case "secondsAt":
            random.chance(90) ? Bytes(now / 1000 + Int64.random(in: 100...900, using: &random)) : lifetime()
        // An empty list takes a real server up to 100 ms.
        case "timeout": random.chance(3) ? "0.02" : random.pick(["abc", "-1", "-inf", "-0.5"])
        default: Bytes(word)
        }
    }

    /// A key that mostly has the wanted type.
    private mutating func key(_ word: String) -> Bytes {
        if word != "kX", random.chance(3) { return random.pick(["missing", Bytes([]), Bytes([0, 255, 10]), "{a}b"]) }
        var wanted = word
        // A range of bytes is only defined for members of equal scores, which those of kX are.
        if word == "k" {
            wanted = random.pick(["kS", "kH", "kL", "kT", "kZ", "kX"])
        } else if word != "kX", random.chance(8) {
            wanted = random.pick(["kS", "kH", "kL", "kT", word == "kZ" ? "kS" : "kX"])
        }
        return Bytes(wanted + String(Int.random(in: 1...2, using: &random)))
    }

    private mutating func member() -> Bytes {
        if random.chance(10) {
            return random.pick([Bytes([]), Bytes([0]), Bytes([255, 254]), Bytes([97, 0, 98]), "10"])
        }
        return Bytes(random.pick(["a", "b", "c", "d", "ab", "abc", "B", "a\u{e9}", "x y"]))
    }

    private mutating func value() -> Bytes {
        if random.chance(20) { return Bytes(Int64.random(in: -5...5, using: &random)) }
        if random.chance(5) { return Bytes([UInt8](repeating: 120, count: Int.random(in: 60...200, using: &random))) }
        return member()
    }

    private mutating func small() -> Bytes { Bytes(Int64.random(in: -6...6, using: &random)) }
    private mutating func large() -> Bytes { Bytes(Int64.random(in: 100_000...900_000, using: &random)) }

    /// Before 7.0, times that are too late were accepted.
    private mutating func lifetime() -> Bytes { isOld ? random.pick(["abc", "1.5", "-1"]) : number() }

    private mutating func number() -> Bytes {
        random.pick([
            "0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "abc", "1.5", Bytes([]),
            "+1", " 1", "1 ", "01", "-0", "1e3", "9007199254740993", "-9223372036854775807", "100000000000000000",
        ])
    }

    private mutating func score() -> Bytes {
        if random.chance(70) { return small() }
        // Before 7.0, small sorted sets had negative zeros.
        if isOld { return random.pick(["1.5", "-0.1", "inf", "-inf", "1e20", "abc", "nan", "9007199254740993"]) }
        return random.pick([
            "1.5", "-0.1", "inf", "-inf", "+inf", "3.1", "1e20", "1e-5", "0.1", "123456789012345678", "1e100", "abc",
            "nan", "-0", Bytes([]), "9007199254740993", "1.7976931348623157e308", "0.3333333333333333", "1e17", "-1e15",
        ])
    }

    private mutating func lex() -> Bytes {
        if random.chance(20) { return random.pick(["-", "+", "a", Bytes([]), "-a"]) }
        return (random.chance(50) ? "[" : "(") + member()
    }

    private mutating func pattern() -> Bytes {
        random.pick(["*", "k?1", "k[HL]*", "k[^S]?", "a*", "*b*", "k[H-S]1", "\\k*", "", "[a-c]", "*\\*", "x y"])
    }
}
