// Random operations of presence, leaderboards and matchmakers.

import SimulatedRedis

/// Makes random operations of GameServices.
struct ServiceGenerator {
    private var random: SeededGenerator
    private var time: Int64
    private var tag = 0
    private var batches: [Bytes: Int] = [:]
    private var tickets = 0
    /// The tag of the last changes of the bucket, and a guess of its version.
    private var position = (version: 0, tag: Bytes("tag00000"))

    init(seed: UInt64, time: Int64) {
        random = SeededGenerator(seed: seed)
        self.time = time
    }

    mutating func operations(_ count: Int) -> [Operation] {
        (0..<count).map { _ in
            time += Int64.random(in: 1...(random.chance(4) ? 5_000_000 : 50_000), using: &random)
            switch Int.random(in: 0..<40, using: &random) {
            case ..<16: return presence()
            case ..<24: return board()
            case ..<39: return match()
            default: return damage()
            }
        }
    }

    private func run(_ name: String, _ keys: [Bytes], _ arguments: [Bytes]) -> Operation {
        Operation(kind: .script("services/" + name), keys: keys, arguments: arguments, time: time)
    }

    // MARK: Presence

    private static let bucket: [Bytes] = ["state", "index", "due", "log", "changes"].map { "gs:{t:b}:presence:" + $0 }

    private mutating func newTag() -> Bytes {
        tag += 1
        return "tag\(String(tag + 100_000).suffix(5))".bytes
    }

    private func bounds(_ count: Double, _ bytes: Double) -> Bytes { Packed().double(count).double(bytes).bytes }

    private mutating func session() -> Bytes { random.pick(["session000000001", "session000000002"]) }

    private mutating func presence() -> Operation {
        let session = session()
        let epoch: Bytes = random.chance(90) ? "epoch000" : ""
        let limits = bounds(random.chance(80) ? 50 : 3, 5000)
        switch Int.random(in: 0..<12, using: &random) {
        case ..<2: return run("presence_join", Self.bucket, [epoch, newTag(), session, "4000"])
        case ..<8: return apply(session, limits)
        case 8:
            let place = Packed().raw("epoch000").double(Double(position.version)).raw(position.tag).bytes
            return run("presence_read", Self.bucket, ["", "", place, bounds(10, random.chance(50) ? 1000 : 10)])
        case 9:
            let from: Bytes = random.pick(["0", "0k1", "1k1"])
            return run("presence_page", Self.bucket, ["", "", from, bounds(random.chance(50) ? 10 : 1, 1000)])
        default:
            let isOf: Bytes = random.chance(70) ? session : ""
            let leaves: Bytes = random.chance(8) ? "leave" : ""
            let last = "\(batches[session] ?? 0)".bytes
            return run(
                "presence_sweep", Self.bucket,
                [
                    epoch, newTag(), limits, isOf, random.chance(90) ? last : "0", "4000", leaves,
                    random.pick(["10", "1"]),
                ])
        }
    }

    private mutating func apply(_ session: Bytes, _ limits: Bytes) -> Operation {
        let number = (batches[session] ?? 0) + (random.chance(90) ? 1 : random.pick([0, 2, -1]))
        batches[session] = max(number, batches[session] ?? 0)
        let tag = newTag()
        let operations = (0..<Int.random(in: 1...4, using: &random)).map { _ in change() }
        let isRepeated = random.chance(15)
        // The versions that the session has been told, as before a failover, are ahead of the bucket's.
        let highest = isRepeated ? position.version + random.pick([0, 0, 3]) : position.version
        position = (highest + operations.count, tag)
        return run(
            isRepeated ? "presence_repeat" : "presence_apply", Self.bucket,
            [isRepeated ? "\(highest)".bytes : "", tag, limits, Packed().raw(session).double(Double(number)).bytes]
                + operations)
    }

    private mutating func change() -> Bytes {
        let key: Bytes = random.pick(["k1", "k2", "k3", ""])
        let user: Bytes = random.pick(["u1", "u2"])
        let connection = Packed().counted(user).counted(random.pick(["c1", "c2"])).raw(
            random.pick(["token001", "token002"]))
        let value: Bytes = random.pick(["v", "", "value"])
        switch Int.random(in: 0..<10, using: &random) {
        case ..<3: return Packed().raw("c").raw(connection.bytes).bytes
        case 3: return Packed().raw("d").raw(connection.bytes).bytes
        case ..<7:
            return Packed().raw("p").raw(connection.bytes).raw(random.pick(["c", "u"]))
                .integer(random.pick([0, 1000, 3_000_000]), 4).integer(random.chance(20) ? 1 : 0, 1)
                .integer(key.count, 2).raw(key).raw(value).bytes
        case ..<9:
            return Packed().raw("u").double(random.chance(70) ? -1.0 : Double(position.version)).integer(key.count, 2)
                .raw(key).raw(value).bytes
        default: return Packed().raw("r").raw(connection.bytes).integer(key.count, 2).raw(key).bytes
        }
    }

    // MARK: Leaderboards

    private mutating func board() -> Operation {
        let prefix = "gs:{t:l}:board:"
        let day = time / 86_400_000_000 * 86_400_000_000
        let name: Bytes = random.pick(["ann", "bob", "cid", "x y"])
        let score: Bytes = random.pick(["10", "7", "-3", "1000000", "10"])
        let always: [Bytes] = ["\(prefix)ranks:all-time".bytes, "\(prefix)stamps:all-time".bytes]
        let daily: [Bytes] = ["\(prefix)ranks:daily".bytes, "\(prefix)stamps:daily".bytes]
        let end = "\(day + 86_400_000_000)".bytes
        switch Int.random(in: 0..<10, using: &random) {
        case ..<4:
            let isOld = random.chance(5)
            let mode: Bytes = random.chance(90) ? "best" : random.pick(["sum", "latest"])
            let answer = "\(prefix)id:\(Int.random(in: 0...9, using: &random))".bytes
            let submit: [Bytes] = [name, score, mode, "-1", "600000"]
            let windows: [Bytes] = [
                "all-time", "0", "0", "0", "daily", "\(day)".bytes, isOld ? "1" : end,
                "\(day / 1000 + 172_800_000)".bytes,
            ]
            return run("board_submit", ["\(prefix)meta".bytes, answer] + always + daily, submit + windows)
        case ..<7:
            let keys = random.chance(50) ? always : daily
            let window: [Bytes] = random.chance(80) ? ["0", "0"] : ["\(day)".bytes, end]
            let queries: [[Bytes]] = [
                ["top", "0", "10"], ["top", "1", "2"], ["around", name, "3"], ["of", "ann", "bob", "zed"],
                ["top", "-1", "x"],
            ]
            return run("board_read", keys, window + random.pick(queries))
        case 7: return run("board_answers", (0..<4).map { "\(prefix)id:\($0)".bytes }, [])
        case 8:
            // Before, and after what any entry has.
            let stamp: Bytes = random.pick(["00000000000001", "00ffffffffffff"])
            return run("board_remove_again", always + daily, [name, stamp, stamp])
        default: return run("board_remove", always + daily, [name])
        }
    }

    // MARK: Matchmakers

    private mutating func match() -> Operation {
        let keys: [Bytes] = ["state", "index", "due", "nodes"].map { "gs:{t:m}:match:" + $0 }
        let rules: Bytes = random.chance(97) ? "2 100 50 1000 500" : "3 100 50 1000 500"
        let node: Bytes = random.pick(["node000000000001", "node000000000002"])
        let head: [Bytes] = [rules, newTag(), node, "5000", "2000", "8000"]
        let ticket = "ticket\(max(1, tickets - Int.random(in: 0...4, using: &random)))".bytes
        switch Int.random(in: 0..<12, using: &random) {
        case ..<5:
            tickets += 1
            let player = "player\(Int.random(in: 1...6, using: &random))".bytes
            let rating = "\(Int.random(in: 0...400, using: &random))".bytes
            let region: Bytes = random.pick(["eu", "us", "eu"])
            let timeout: Bytes = random.pick(["0", "3000"])
            return run("match_enqueue", keys, head + ["ticket\(tickets)".bytes, player, rating, region, timeout])
        case ..<7: return run("match_tick", keys, head + [random.pick(["10", "1", "100"])])
        case 7: return run("match_end", keys, head + [ticket, random.pick(["0", "1"])])
        case 8: return run("match_told", keys, head + [random.pick(["tag00001", "x"])])
        case 9: return run("match_known", keys, head + [ticket, "ticket\(tickets)".bytes, "unknown"])
        case 10:
            let outcome: [Bytes] = random.chance(50) ? ["m1", "matched", "eu"] : ["end-1", "cancelled", "eu"]
            return run(
                "match_restore", keys, head + outcome + [ticket, "player1", "10", "restored".bytes, "player2", "20"])
        default: return run("match_inspect", keys, head)
        }
    }

    private mutating func damage() -> Operation {
        let commands: [[Bytes]] = [
            ["ZREM", "gs:{t:m}:match:due", "a"], ["HDEL", Self.bucket[0], "ku1"], ["LTRIM", Self.bucket[3], "1", "-1"],
            ["HSET", Self.bucket[0], "b", "short"], ["DEL", "gs:{t:l}:board:stamps:daily"],
            ["DEL", Self.bucket[1]], ["HDEL", "gs:{t:m}:match:state", "p:player1"], ["PTTL", Self.bucket[0]],
        ]
        return Operation(kind: .command, arguments: random.pick(commands), time: time)
    }
}
