// Random operations of the workers of a mailbox.

import SimulatedRedis

/// Makes random operations of workers. It guesses the fences of the jobs that a worker would have, by the time at which it
/// has asked for them.
struct JobGenerator {
    private static let processes: [Bytes] = ["worker0000000001", "worker0000000002"]

    private var number: [Bytes: Int] = [:]
    private var fences: [Double] = [1]

    /// - Parameters:
    ///   - name: of the mailbox, whose messages have the tags.
    ///   - target: the beginning of requests of mailboxes.
    mutating func operation(
        _ name: String, tags: [Bytes], target: Bytes, time: Int64, _ random: inout SeededGenerator
    ) -> Operation {
        let jobs = ["work", "jobs", "dead"].map { "ql:{t:0}:\($0):\(name)".bytes }
        func run(_ script: String, _ arguments: [Bytes]) -> Operation {
            Operation(kind: .script("mail/" + script), keys: jobs, arguments: arguments, time: time)
        }
        let process = random.pick(Self.processes)
        let some = tags.suffix(6).filter { _ in random.chance(50) }
        switch Int.random(in: 0..<20, using: &random) {
        case 0: return run("list_jobs", [random.pick(["0", "1", "2"]), random.pick(["0", "1", "100"])])
        case 1: return run("retry_jobs", some)
        case 2: return run("cancel_jobs", Array(some.prefix(1)))
        case 3: return run("pause_work", [random.pick(["0", "0", "1"])])
        case 4..<9:
            let known = some.reduce(Bytes([])) { $0 + $1 }
            let phase: Bytes = random.pick(["0", "0", "1", "1", "1", "2"])
            if phase == "0", random.chance(30) { number[process] = 0 }
            return run(
                "beat", [process, random.pick(["1", "600000"]), phase, "\(number[process, default: 0])".bytes, known])
        case 9:
            let commands: [[Bytes]] = [
                ["DEL", jobs[0]], ["DEL", jobs[1]], ["SET", jobs[2], "foreign"], ["DEL", jobs[2]],
                ["HDEL", jobs[0], "c"],
                ["SET", jobs[1], "foreign"],
            ]
            return Operation(kind: .command, arguments: random.pick(commands), time: time)
        case 10 where random.chance(50):
            // A job that its worker has finished with its effect.
            let job = Packed().integer(5, 1).integer(1, 2).double(random.pick(fences)).double(0.0).raw(process)
                .integer(0, 1)
            let field = "j:".bytes + random.pick(tags.suffix(3) + ["12345678"])
            return Operation(kind: .command, arguments: ["HSET", jobs[0], field, job.bytes], time: time)
        case 10:
            let fence = "\(Int(random.pick(fences)))".bytes
            return Operation(
                kind: .script("mail/finish_job"), keys: ["effect"] + jobs.prefix(1),
                arguments: ["argument", process, random.pick(tags.suffix(3) + ["12345678"]), fence], time: time)
        default: return work(name, jobs, process, some, target, time, &random)
        }
    }

    private mutating func work(
        _ name: String, _ jobs: [Bytes], _ process: Bytes, _ tags: [Bytes], _ target: Bytes, _ time: Int64,
        _ random: inout SeededGenerator
    ) -> Operation {
        let nothing = Bytes([UInt8](repeating: 0, count: 8))
        let listen = Packed().raw(target).integer(0, 1).raw("process000000001").double(0.0)
            .double(random.chance(70) ? 30_000.0 : 0.0).double(-1.0).raw(nothing).raw(nothing).double(0.0).double(0.0)
            .double(random.chance(80) ? 0.0 : 600_000.0).double(random.chance(80) ? 0.0 : 2.0).double(0.0)
            .double(random.chance(80) ? 2_592_000_000.0 : 5000.0)
        if random.chance(85) { number[process, default: 0] += 1 }
        let room = random.pick([0.0, 1.0, 3.0, 8.0])
        let request = Packed().raw(process).double(Double(number[process, default: 0]))
            .double(random.chance(98) ? 0.0 : 8e15).double(room).double(random.chance(80) ? 100_000.0 : 50.0)
            .double(random.pick([0.0, 1.0, 100.0])).integer(tags.count, 2)
        let ends = tags.map { tag in
            Packed().raw(tag).double(random.pick(fences)).integer(Int.random(in: 0...4, using: &random), 1)
                .double(random.pick([0.0, 50_000.0])).raw(random.pick(["", "why"])).bytes
        }
        fences = fences.suffix(8) + (0..<3).map { Double(time / 1000 * 1000 + $0) }
        return Operation(
            kind: .script("mail/work"),
            keys: ["ql:{t:0}:meta", "ql:{t:0}:box:\(name)".bytes, "ql:{t:0}:mail:\(name)".bytes] + jobs,
            arguments: [listen.bytes, request.bytes] + ends, time: time)
    }
}
