// Random operations of the engine: sessions, and all primitives.

import SimulatedRedis

/// Makes random operations of the engine. It remembers which claims it has asked for, but not what was replied, so that
/// requests are plausible and some are repeated, stale or too early.
struct EngineGenerator {
    /// A kind of resource with permits for it, and how clients use it.
    struct Kind {
        var letters: String
        var permits: [String]
        var modes: [String]
        var family: String
    }

    private static let kinds: [Kind] = [
        Kind(letters: "mf", permits: ["1"], modes: ["m", "m", "k"], family: "permits"),
        Kind(letters: "sf", permits: ["2"], modes: ["l", "c"], family: "permits"),
        Kind(letters: "sb", permits: ["3"], modes: ["l", "c"], family: "permits"),
        Kind(letters: "rf", permits: ["8"], modes: ["l"], family: "permits"),
        Kind(letters: "rw", permits: ["8"], modes: ["l"], family: "permits"),
        Kind(letters: "cf", permits: ["0"], modes: ["c"], family: "permits"),
        Kind(letters: "tf", permits: ["0"], modes: ["c"], family: "turnstile"),
        Kind(letters: "kf", permits: ["2"], modes: ["l"], family: "buffer"),
        Kind(letters: "sf", permits: ["2"], modes: ["l", "t", "t"], family: "groups"),
        Kind(letters: "mf", permits: ["1"], modes: ["m", "t"], family: "groups"),
        Kind(letters: "ld", permits: ["2"], modes: ["c", "p"], family: "latch"),
        Kind(letters: "lf", permits: ["3"], modes: ["c", "p"], family: "latch"),
        Kind(letters: "bo", permits: ["2"], modes: ["a"], family: "meeting"),
        Kind(letters: "bb", permits: ["2"], modes: ["a"], family: "meeting"),
        Kind(letters: "pf", permits: ["0"], modes: ["r", "a"], family: "meeting"),
        Kind(letters: "eo", permits: ["2"], modes: ["e"], family: "meeting"),
    ]

    static let keys: [Bytes] = [
        "rdc:{t:0}:book", "rdc:{t:0}:index", "rdc:{t:0}:sessions", "rdc:{t:0}:values", "rdc:{t:0}:put:7kf",
    ]

    struct Claim {
        var slot: String
        var number: Int
        var name: String
        var kind: Kind
    }

    var random: SeededGenerator
    var time: Int64
    var numbers: [String: Int] = [:]
    var claims: [Claim] = []

    init(seed: UInt64, time: Int64) {
        random = SeededGenerator(seed: seed)
        self.time = time
    }

    mutating func operations(_ count: Int) -> [Operation] {
        // Some sessions exist from the beginning.
        var list = ["A", "B", "C"].map { join("sess\($0)") }
        while list.count < count {
            time += Int64.random(in: 1...(random.chance(5) ? 2_000_000 : 20_000), using: &random)
            list.append(damaged(operation()))
        }
        return list
    }

    private mutating func operation() -> Operation {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<18: sessionOperation()
        case ..<55: request()
        case ..<80: end()
        case ..<88: resourceOperation()
        case ..<94: view()
        case ..<98: other()
        default: damage()
        }
    }

    // MARK: Sessions

    private mutating func sid() -> String { "sess" + random.pick(["A", "B", "C", "A", "B", "C", "A", "B", "D"]) }

    func run(_ name: String, _ arguments: [Bytes], keys: Int = 4) -> Operation {
        Operation(
            kind: .script("engine/" + name), keys: Array(Self.keys.prefix(keys)), arguments: arguments, time: time)
    }

    private func join(_ sid: String) -> Operation {
        run("join", [Bytes(sid), "epoch001", "3000000", "1 layout 3", "about \(sid)".bytes, "0"])
    }

    private mutating func sessionOperation() -> Operation {
        let sid = sid()
        switch Int.random(in: 0..<13, using: &random) {
        case ..<3: return join(sid)
        case ..<6: return heartbeat(sid)
        case 6: return run("sweep", [Bytes(sid), random.pick(["", "2", "1"])])
        case 7: return run("claims", [Bytes(sid), random.pick(["0", "1"])])
        case 8: return run("confirm", [Bytes(sid), "0:\(numbers["c:\(sid):0"] ?? 1) 1:2".bytes])
        case 9: return random.chance(40) ? run("leave", [Bytes(sid)]) : heartbeat(sid)
        case 11: return touch(sid)
        case 10: return run("set_aside", [Bytes(sid), "0", "\(numbers["c:\(sid):0"] ?? 1)".bytes])
        default:
            return Operation(
                kind: .scan("engine/list_sessions"), keys: Array(Self.keys.prefix(4)), arguments: ["0"], time: time)
        }
    }

    private mutating func heartbeat(_ sid: String) -> Operation {
        let slot = random.pick(["", "0", "1"])
        let number = numbers["c:\(sid):\(slot)"] ?? 0
        let kind = random.pick(["0", "1"])
        return run(
            "heartbeat",
            [Bytes(sid), "3000000", Bytes(slot), "\(number)".bytes, Bytes(kind), "0", random.pick(["1", "2"])])
    }

    /// Up to three changes, as they may be or not.
    private mutating func touch(_ sid: String) -> Operation {
        var arguments = [Bytes(sid)]
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            let slot = random.pick(["", "0", "1"])
            let number = (numbers["c:\(sid):\(slot)"] ?? 0) + random.pick([0, 0, 1])
            arguments += [Bytes(slot), "\(number)".bytes, random.pick(["h", "e", "w"])]
        }
        return run("touch", arguments, keys: 2)
    }

    // MARK: Requests

    mutating func resource() -> (name: String, kind: Kind) {
        let index = Int.random(in: 0..<Self.kinds.count, using: &random)
        let kind = Self.kinds[index]
        return ("\(index)\(kind.letters)", kind)
    }

    /// The first three arguments of a request in a slot.
    private mutating func slot() -> (field: String, number: Int) {
        var field = ""
        // Mostly a slot without a claim.
        for _ in 0..<4 where field.isEmpty || claims.contains(where: { $0.slot == field }) {
            field = "c:\(sid()):\(Int.random(in: 0...3, using: &random))"
        }
        let last = numbers[field] ?? 0
        let number = random.chance(85) ? last + 1 : max(1, last - Int.random(in: 0...1, using: &random))
        numbers[field] = max(last, number)
        return (field, number)
    }

    mutating func request() -> Operation {
        let (name, kind) = resource()
        let (field, number) = slot()
        let mode = random.pick(kind.modes)
        let permits = random.chance(3) ? "5" : kind.permits[0]
        let head: [Bytes] = [
            Bytes(field), "\(number)".bytes, "t:\(name)".bytes, Bytes(kind.letters), Bytes(permits), Bytes(mode),
        ]
        claims.append(Claim(slot: field, number: number, name: name, kind: kind))
        if claims.count > 12 { claims.removeFirst() }
        let wanted: Bytes = kind.letters.hasPrefix("r") && random.chance(40) ? "8" : random.chance(90) ? "1" : "2"
        let more: [Bytes] = [wanted, random.pick(["0", "0", "1"]), random.pick(["1", "1", "1", "0"])]
        switch (kind.family, mode) {
        case ("groups", _): return run("acquire_in_group", head + more + [random.pick(["g1", "g2"])], keys: 2)
        case ("latch", "p"): return run("participate", head, keys: 2)
        case ("latch", _): return run("wait_for_latch", head + more, keys: 2)
        case ("meeting", "r"): return run("register", head, keys: 2)
        case ("meeting", "e"): return run("arrive", head + [random.pick(["gift", Bytes([0, 1]), ""])])
        case ("meeting", _): return run("arrive", head)
        case ("buffer", _):
            if random.chance(30) { return run("acquire_for_put", head + more + ["put\(number % 3)".bytes], keys: 5) }
            if random.chance(40) {
                let item: [Bytes] = [head[0], head[1], "t:\(name)#items".bytes, "if", "0", "i"]
                return run("acquire", item + more)
            }
            return run("acquire", head + more, keys: 4)
        default: return run("acquire", head + more, keys: random.chance(50) ? 2 : 4)
        }
    }

    private mutating func resourceOperation() -> Operation {
        let (name, kind) = resource()
        let (field, number) = slot()
        let head: [Bytes] = [
            Bytes(field), "\(number)".bytes, "t:\(name)".bytes, Bytes(kind.letters), Bytes(kind.permits[0]),
        ]
        let isGroup = kind.family == "groups"
        switch Int.random(in: 0..<8, using: &random) {
        case ..<2: return run(isGroup ? "signal_groups" : "signal", head + [random.pick(["1", "2"])], keys: 2)
        case 2: return run(isGroup ? "create_for_groups" : "create", head, keys: 2)
        case 3: return run(isGroup ? "resize_for_groups" : "resize", head + [random.pick(["1", "2", "4"])], keys: 2)
        case 4: return run("set_turnstile", head + [random.pick(["0", "1"])], keys: 2)
        case 5: return run("count_down", head + [random.pick(["", "id1", "id2"])], keys: 2)
        case 6:
            return random.chance(30)
                ? run("destroy", Array(head.prefix(4))) : run("settle_claim", [head[0], head[1], ""], keys: 2)
        default: return run("settle_call", [head[0], head[1], ""], keys: 2)
        }
    }

    // MARK: Views and damage

    private mutating func view() -> Operation {
        let (name, kind) = resource()
        switch Int.random(in: 0..<6, using: &random) {
        case 0, 1:
            let recheck = ["groups": "recheck_groups", "meeting": "recheck_meeting"][kind.family] ?? "recheck"
            return run(recheck, [Bytes(name)])
        case 2: return run("clear", [Bytes(name)])
        case 3: return run("inspect", [Bytes(name), random.pick(["1", "5", "200"])])
        case 4:
            return Operation(kind: .scan("engine/list"), keys: Array(Self.keys.prefix(4)), arguments: ["0"], time: time)
        default:
            let claim = claims.last
            return run(
                "read",
                [Bytes(claim?.slot ?? "c:x:0"), "", "t:\(claim?.name ?? "x")".bytes, "\(claim?.number ?? 1)".bytes])
        }
    }

    private mutating func other() -> Operation {
        switch Int.random(in: 0..<7, using: &random) {
        case 6:
            return Operation(
                kind: .script("engine/guard"), keys: ["{g}1", "{g}2", "rdc:fence:{g}:{g}1", "rdc:fence:{g}:{g}2"],
                arguments: ["own", random.pick(["8", "9", "10"]), random.pick(["t:m", "t:m", "t:n"])], time: time)
        case ..<2:
            return Operation(
                kind: .script("engine/rate_limit"), keys: ["rdc:{t:rate:x}"],
                arguments: [
                    random.pick(["200000000", "500000000"]), random.pick(["10", "3"]), random.pick(["1", "2", "0.9"]),
                ],
                time: time)
        default: return classic()
        }
    }

    private mutating func classic() -> Operation {
        let name: Bytes = "rdc:sem:c"
        let meta: Bytes = "rdc:sem-meta:{rdc:sem:c}"
        let gone: Bytes = "rdc:sem-gone:{rdc:sem:c}"
        func run(_ script: String, _ keys: [Bytes], _ arguments: [Bytes]) -> Operation {
            Operation(kind: .script("engine/" + script), keys: keys, arguments: arguments, time: time)
        }
        switch Int.random(in: 0..<5, using: &random) {
        case ..<2: return run("classic_create", [name, meta, gone], [random.pick(["3", "4"])])
        case 2: return run("classic_destroy", [name, meta, gone], ["600000"])
        case 3: return run("classic_pass_on", [gone, meta], ["600000"])
        default:
            return run(
                "classic_give_back", [name, random.pick(["back:1", "back:2"])], ["1", random.pick(["600", "0"])])
        }
    }

    /// Changes a key as no script does.
    private mutating func damage() -> Operation {
        let (name, _) = resource()
        let state = Self.keys[0]
        let field = random.pick(["t:\(name)", "c:sessA:0", "s:sessB", "clock", "watchers", "epoch"]).bytes
        let commands: [[Bytes]] = [
            ["HSET", state, field, random.pick(["", "damaged", Bytes([UInt8](repeating: 1, count: 70))])],
            ["HDEL", state, field], ["HDEL", state, "clock"], ["DEL", Self.keys[3]], ["ZADD", Self.keys[1], "0", "qX"],
            ["DEL", Self.keys[2]], ["LPUSH", "rdc:sem:c", "1"], ["SET", Self.keys[4], "x"],
        ]
        return Operation(kind: .command, arguments: random.pick(commands), time: time)
    }

    private mutating func damaged(_ operation: Operation) -> Operation {
        // A wrong rate makes a key that expires within a millisecond, at another time on each server.
        guard random.chance(4), !operation.arguments.isEmpty, case .script(let name) = operation.kind,
            name != "engine/rate_limit"
        else { return operation }
        var operation = operation
        let index = Int.random(in: 0..<operation.arguments.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: operation.arguments.remove(at: index)
        case 1: operation.arguments[index] = random.pick(["", "x", "-1", "1e9", "0", Bytes([0, 255]), "99999999999"])
        case 2: operation.arguments.append("extra")
        default: operation.keys.reverse()
        }
        return operation
    }
}

extension String {
    var bytes: Bytes { Bytes(self) }
}
