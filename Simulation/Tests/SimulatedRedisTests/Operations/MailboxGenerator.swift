// Random operations of mailboxes.

import SimulatedRedis

/// Makes random operations of mailboxes. It guesses the positions that a reader would have, by the messages it has sent.
struct MailboxGenerator {
    private static let names = ["ann", "bob"]
    private static let meta: Bytes = "ql:{t:0}:meta"

    /// A reader's knowledge of a mailbox.
    private struct Box {
        var epoch: Bytes?
        var tags: [Bytes] = []
    }

    private var random: SeededGenerator
    private var time: Int64
    private var boxes: [String: Box] = [:]
    private var tag = 0
    private var request = 0
    private var poll: Int64 = 1
    private var jobs = JobGenerator()

    init(seed: UInt64, time: Int64) {
        random = SeededGenerator(seed: seed)
        self.time = time
    }

    mutating func operations(_ count: Int) -> [Operation] {
        (0..<count).map { _ in
            time += Int64.random(in: 1...(random.chance(3) ? 20_000_000 : 30_000), using: &random)
            return operation()
        }
    }

    private mutating func operation() -> Operation {
        let name = random.pick(Self.names)
        switch Int.random(in: 0..<130, using: &random) {
        case ..<40: return send()
        case ..<70: return listen(name)
        case ..<75:
            return run("peek", name, [target(), random.pick(["", "0", "2"]), "10", random.pick(["1", "5000"])])
        case ..<79: return run("inspect", name, [target()])
        case ..<81: return delete(name)
        case ..<83: return run("set_limits", name, [target(), random.chance(40) ? limits() : ""])
        case ..<86: return run("repair", name, [target(), random.chance(50) ? "" : known(name)])
        case ..<88: return run("forget", name, [target(), random.pick(["phone", "desk"]), ""])
        case ..<89: return acknowledged()
        case ..<92: return check()
        case ..<98: return crossPartition()
        case ..<100: return damage(name)
        default:
            return jobs.operation(name, tags: boxes[name]?.tags ?? [], target: target(), time: time, &random)
        }
    }

    private func keys(_ name: String) -> [Bytes] { ["ql:{t:0}:box:\(name)".bytes, "ql:{t:0}:mail:\(name)".bytes] }

    private func run(_ script: String, _ name: String, _ arguments: [Bytes]) -> Operation {
        Operation(kind: .script("mail/" + script), keys: [Self.meta] + keys(name), arguments: arguments, time: time)
    }

    private mutating func newTag() -> Bytes {
        tag += 1
        return "tag\(String(tag + 100_000).suffix(5))".bytes
    }

    private mutating func target() -> Bytes { Packed().integer(random.chance(97) ? 1 : 2, 2).raw(newTag()).bytes }

    private mutating func limits() -> Bytes {
        Packed().double(Double(Int.random(in: 1...4, using: &random))).double(500.0)
            .integer(Int.random(in: 0...1, using: &random), 1).double(0.0).double(2_592_000_000.0)
            .double(random.chance(50) ? 0 : 2.0).double(0.0).double(2_592_000_000.0).bytes
    }

    /// The last message of a mailbox that a sender has been told of, rightly or not.
    private func known(_ name: String) -> Bytes {
        let box = boxes[name] ?? Box()
        let index = box.tags.count
        let last = box.tags.last ?? Bytes([UInt8](repeating: 0, count: 8))
        return Packed().raw(box.epoch ?? last).double(Double(index)).raw(last).bytes
    }

    private mutating func send() -> Operation {
        let count = Int.random(in: 1...3, using: &random)
        let recipients = random.chance(30) ? Self.names : [random.pick(Self.names)]
        let hasKeys = random.chance(30)
        if random.chance(90) { request += 1 }
        var head = Packed().integer(random.chance(94) ? 0 : Int.random(in: 1...2, using: &random), 1).integer(1, 2)
            .integer(hasKeys ? 1 : 0, 1).integer(count, 2).raw(random.pick(["01", "02"])).double(Double(request))
            .double(600_000.0).raw("finger\(random.pick(["00", "00", "01"]))".bytes)
            .double(Double(time / 1000 + (random.chance(80) ? 1000 : -1000)))
        head = head.double(random.chance(80) ? 1000.0 : 3.0).double(random.chance(90) ? 100_000.0 : 100.0)
            .integer(Int.random(in: 0...1, using: &random), 1).double(random.chance(80) ? 0.0 : 5000.0)
            .double(2_592_000_000.0)
        var bodies: [Bytes] = []
        for _ in 0..<count {
            let tag = newTag()
            head = head.raw(tag)
            for name in recipients {
                if boxes[name]?.epoch == nil { boxes[name, default: Box()].epoch = tag }
                boxes[name]?.tags.append(tag)
            }
            let key: Bytes = hasKeys ? random.pick(["", "k1", "k2"]) : ""
            let life = random.chance(20) ? Int.random(in: 1...9000, using: &random) : 0
            let size = random.chance(5) ? 2000 : Int.random(in: 0...40, using: &random)
            bodies.append(
                Packed().integer(life, 6).integer(key.count, 1).raw(key)
                    .raw(random.pick(["", "id=1\norder=a\n\n", "id=1\norder=b\n\n"]))
                    .raw(Bytes([UInt8](repeating: 120, count: size))).bytes)
        }
        if random.chance(40) { for name in recipients { head = head.raw(known(name)) } }
        let lists: [Bytes] =
            count > 1 && random.chance(30) ? recipients.map { _ in random.pick(["", "1", "1,2"]) } : []
        return Operation(
            kind: .script("mail/send"),
            keys: [Self.meta, random.pick(["ql:{t:0}:sent:a", "ql:{t:0}:sent:b"])] + recipients.flatMap { keys($0) },
            arguments: [head.bytes] + bodies + lists, time: time)
    }

    private mutating func listen(_ name: String) -> Operation {
        let box = boxes[name] ?? Box()
        let nothing = Bytes([UInt8](repeating: 0, count: 8))
        var index = -1
        var epoch = nothing
        var tag = nothing
        if random.chance(60), !box.tags.isEmpty {
            index = max(1, box.tags.count - Int.random(in: 0...3, using: &random))
            epoch = box.epoch ?? nothing
            tag = box.tags[index - 1]
        }
        let phase = random.pick([0, 1, 1, 2, 3]) + (random.chance(10) ? 4 : 0)
        if random.chance(60) { poll += 1 }
        let process: Bytes = random.pick(["process000000001", "process000000002"])
        let request = Packed().raw(target()).integer(phase, 1).raw(process).double(Double(poll))
            .double(random.chance(70) ? 30_000.0 : 0.0).double(Double(index)).raw(epoch).raw(tag)
            .double(random.chance(80) ? 100.0 : 1.0).double(random.chance(80) ? 100_000.0 : 50.0)
            .double(2_592_000_000.0).double(0.0).double(0.0).double(random.chance(90) ? 2_592_000_000.0 : 5000.0)
        return run("listen", name, [request.bytes, random.pick(["phone", "desk"])])
    }

    private mutating func delete(_ name: String) -> Operation {
        boxes[name] = nil
        let jobs = ["work", "jobs", "dead"].map { "ql:{t:0}:\($0):\(name)".bytes }
        return Operation(
            kind: .script("mail/delete"), keys: [Self.meta] + keys(name) + jobs, arguments: [target()], time: time)
    }

    private mutating func check() -> Operation {
        let waits = Self.names.map { name in
            Packed().raw(known(name)).double(Double(poll)).raw(random.pick(["phone", "desk"])).bytes
        }
        return Operation(
            kind: .script("mail/check"), keys: [Self.meta] + Self.names.map { keys($0)[0] },
            arguments: ["process000000001", random.pick(["0", "30000"]), random.pick(["0", "1000"])] + waits, time: time
        )
    }

    private mutating func acknowledged() -> Operation {
        let positions = Self.names.flatMap { name -> [Bytes] in
            let last = boxes[name]?.tags.count ?? 0
            return ["\(max(0, last - random.pick([0, 1, 2])))".bytes, random.pick(["phone", "desk"])]
        }
        return Operation(
            kind: .script("mail/acknowledged"), keys: Self.names.map { keys($0)[0] }, arguments: positions, time: time)
    }

    private mutating func crossPartition() -> Operation {
        let id: Bytes = random.pick(["s1", "s2"])
        let split = "ql:{t:0}:split:" + id
        let splits: Bytes = "ql:{t:0}:splits"
        func run(_ script: String, _ keys: [Bytes], _ arguments: [Bytes]) -> Operation {
            Operation(kind: .script("mail/" + script), keys: keys, arguments: arguments, time: time)
        }
        switch Int.random(in: 0..<9, using: &random) {
        case 4: return later()
        case 8:
            return run(
                "advance", ["ql:{t:0}:later:" + id, "ql:{t:0}:laters", "ql:{t:0}:later:" + id + "@"],
                [
                    id, "1700000000000", random.pick(["", "1700000001000", "1700000000000"]), "900000",
                    random.pick(["", id + "@"]), "f1", "encoded", "900000", "5000", random.pick(["1", "10"]),
                ])
        case 5: return later()
        case 6:
            return run("take_due", ["ql:{t:0}:laters"], [random.pick(["100", "5000"]), random.pick(["1", "10"])])
        case 7:
            return run(
                "cancel", ["ql:{t:0}:later:" + id, "ql:{t:0}:laters"],
                [id, "900000", random.pick(["", "call 1..", "call 2.."])])
        case 0:
            return run(
                "begin", [Self.meta, split, splits], ["1", id, random.pick(["f1", "f2"]), "encoded", "900000"])
        case 1: return run("finish", [split, splits], [id, "1 2", "900000"])
        case 2: return run("take_over", [splits], [random.pick(["0", "5000"]), "10"])
        default: return run("time", [Self.meta], [])
        }
    }

    private mutating func later() -> Operation {
        let recurrence: [Bytes] = [random.pick(["", "once every 1000 0"]), random.pick(["", "1", "2"])]
        let id: Bytes = random.pick(["s1", "s2"])
        let delay: [Bytes] = random.chance(50) ? ["", random.pick(["0", "0.5", "2000"])] : ["1700000000000", ""]
        return Operation(
            kind: .script("mail/schedule"), keys: [Self.meta, "ql:{t:0}:later:" + id, "ql:{t:0}:laters"],
            arguments: ["1", id, random.pick(["f1", "f2"]), "encoded", random.pick(["call 1..", "call 2.."])] + delay
                + ["900000", random.pick(["1", "10"])] + (delay[0].isEmpty ? ["", ""] : recurrence), time: time)
    }

    private mutating func damage(_ name: String) -> Operation {
        let pair = keys(name)
        let commands: [[Bytes]] = [
            ["RPOP", pair[1]], ["LPOP", pair[1], "2"], ["DEL", pair[0]], ["DEL", pair[1]], ["SET", pair[0], "foreign"],
            ["RPUSH", pair[1], "odd"], ["HDEL", pair[0], "d"], ["FLUSHALL"],
            ["HSET", pair[0], "m", random.chance(30) ? "short" : ""],
            ["HSET", Self.meta, "partitions", "4 layout 2"], ["HDEL", Self.meta, "partitions"],
        ]
        return Operation(kind: .command, arguments: random.pick(commands), time: time)
    }
}
