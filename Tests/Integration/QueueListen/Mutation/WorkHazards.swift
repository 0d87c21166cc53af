// The invariants of workers: each job is run by one worker at a time, and by another one when that is dead.
import Hiredis
import TestSupport

@testable import QueueListen

extension MailHazard {
    static let work: [MailHazard] = [
        MailHazard(
            invariant: "M5", testDescription: "a request of a worker that is repeated takes the same jobs",
            guardian: "if request_number == worker_number then", without: "if false then"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a", "b"], to: ["jobs"], number: 1)
            let jobs = try await node.work(ForeignNode.one, number: 1).jobs
            return try await node.work(ForeignNode.one, number: 1).jobs.map(\.fence) == jobs.map(\.fence)
        },
        MailHazard(
            invariant: "M5", testDescription: "a request of a worker that arrives after a later one takes no job",
            guardian: "if request_number < worker_number then", without: "if false then"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.work(ForeignNode.one, number: 2)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            return try await node.work(ForeignNode.one, number: 1).status == "stale"
        },
        MailHazard(
            invariant: "M5", testDescription: "a worker that has not begun takes no job",
            guardian: "if not fields[1] then", without: "if false then"
        ) { node, _ in
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            return try await node.work(ForeignNode.one, number: 1).status == "gone"
        },
        MailHazard(
            invariant: "M5", testDescription: "the end of an earlier run of a job does not end a later one",
            guardian: "job_process == request_process and job_fence == ended_fence",
            without: "job_process == request_process"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            let first = try await node.work(ForeignNode.one, number: 1).jobs[0]
            let again = try await node.work(ForeignNode.one, number: 2, ends: [(first, .return)])
            guard again.results == "1", again.jobs.count == 1 else { return false }
            return try await node.work(ForeignNode.one, number: 3, ends: [(first, .done)]).results == "0"
        },
        MailHazard(
            invariant: "M5", testDescription: "jobs with the same order key run one after the other",
            guardian: "elseif queue then", without: "elseif false then"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a", "b"], to: ["jobs"], number: 1, order: "k")
            let first = try await node.work(ForeignNode.one, number: 1, room: 2).jobs
            guard first.count == 1 else { return false }
            return try await node.work(ForeignNode.one, number: 2, room: 2, ends: [(first[0], .done)]).jobs.count == 1
        },
        MailHazard(
            invariant: "M5", testDescription: "the jobs of a worker that is dead are run by others",
            guardian: "if job_state == 2 and job_process == other then", without: "if false then"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one, ttl: 1)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            _ = try await node.work(ForeignNode.one, number: 1)
            try await node.untilDead(ForeignNode.one)
            return try await node.work(ForeignNode.two, number: 1).jobs.map(\.attempt) == [2]
        },
        MailHazard(
            invariant: "M5", testDescription: "a worker that was found dead does not continue",
            guardian: "if phase == '1' and not (workers_is_alive and worker_is_known) then", without: "if false then"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one, ttl: 1)
            try await node.untilDead(ForeignNode.one)
            return try await node.beat(ForeignNode.one, phase: "1").first == "gone"
        },
        MailHazard(
            invariant: "M5", testDescription: "a job that was cancelled while it ran is not tried again",
            guardian: "local is_over = job_state == 3 or job_state == 5", without: "local is_over = false"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            let job = try await node.work(ForeignNode.one, number: 1).jobs[0]
            guard try await node.cancel(job) == ["2"] else { return false }
            return try await node.work(ForeignNode.one, number: 2, ends: [(job, .retry)]).results == "1"
        },
        MailHazard(
            invariant: "M5",
            testDescription: "a mailbox that has forgotten its workers does not give them what they have taken",
            guardian: "position_index, position_tag, position_unsure = unpacked('<dc8d', text)",
            without: "position_unsure = 0"
        ) { node, redis in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.listen(to: "jobs")
            _ = try await node.send(["a", "b"], to: ["jobs"], number: 1)
            let first = try await node.work(ForeignNode.one, number: 1).jobs[0]
            _ = try await redis.send("HSET", .string(node.key("box:jobs")), "d", "")
            let second = try await node.work(ForeignNode.one, number: 2, ends: [(first, .done)]).jobs
            return second.count == 1 && second[0].tag != first.tag
        },
        MailHazard(
            invariant: "M5", testDescription: "workers that are paused take nothing",
            guardian: "if harvest_room > 0 and not harvest_is_blocked then", without: "if harvest_room > 0 then"
        ) { node, redis in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            _ = try await node.run("pause_work", node.jobKeys, ["1"])
            return try await node.work(ForeignNode.one, number: 1).jobs.isEmpty
        },
        MailHazard(
            invariant: "M5", testDescription: "the fence is higher than all that the worker has seen",
            guardian: "math.max(tonumber(fields[2] or 0),", without: "math.min(tonumber(fields[2] or 0),"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            let fence = 9_000_000_000_000_000
            return try await node.work(ForeignNode.one, number: 1, fence: fence).jobs[0].fence > fence
        },
        MailHazard(
            invariant: "M5", testDescription: "a job that runs is not tried again by an operator",
            guardian: "if job_state == 4 then", without: "if true then"
        ) { node, _ in
            try await node.beginWorker(ForeignNode.one)
            _ = try await node.send(["a"], to: ["jobs"], number: 1)
            let job = try await node.work(ForeignNode.one, number: 1).jobs[0]
            return try await node.run("retry_jobs", node.jobKeys, [ForeignNode.tag(job)]) == ["0"]
        },
    ]
}

extension ForeignNode {
    fileprivate static let (one, two) = ("worker 1 .......", "worker 2 .......")

    fileprivate var jobKeys: [String] { [key("work:jobs"), key("jobs:jobs"), key("dead:jobs")] }

    fileprivate static func tag(_ job: TakenJob) -> RedisArgument {
        var tag = PackedBytes()
        tag.uint64(job.tag)
        return .bytes(tag.bytes)
    }

    fileprivate func beginWorker(_ process: String, ttl: Int = 3_600_000) async throws {
        _ = try await beat(process, phase: "0", ttl: ttl)
    }

    /// - Parameter phase: of the worker's life: 0 to begin, 1 to continue, 2 to leave.
    fileprivate func beat(_ process: String, phase: String, ttl: Int = 3_600_000) async throws -> Reply {
        try await run(
            "beat", jobKeys, [.string(process), .integer(ttl), .string(phase), .integer(0), ""])
    }

    /// Lets the second worker find another one dead.
    fileprivate func untilDead(_ process: String) async throws {
        try await until("it is dead") {
            _ = try await beat(Self.two, phase: "0")
            return try await redis.send("HGET", .string(key("work:jobs")), "p").bytes?.count == 24
        }
    }

    fileprivate func cancel(_ job: TakenJob) async throws -> Reply {
        try await run("cancel_jobs", jobKeys, [Self.tag(job)])
    }

    fileprivate func work(
        _ process: String, number: Int, room: Int = 1, fence: Int = 0, ends: [(TakenJob, JobEnd.Outcome)] = []
    ) async throws -> (status: String?, results: String?, jobs: [TakenJob]) {
        var listen = Packed.short(1) + Array("epoch-99".utf8) + [0] + Array(Self.process.utf8)
        listen += Packed.doubles(0, 60_000, -1) + [UInt8](repeating: 0, count: 16) + Packed.doubles(0, 0)
        listen += limits.packed[25...]
        var request = Array(process.utf8) + Packed.doubles(number, fence, room, 1_000_000, 100)
        request += Packed.short(ends.count)
        let arguments = ends.map { JobEnd(tag: $0.tag, fence: $0.fence, outcome: $1).argument }
        let reply = try await reply(
            "work", [key("meta"), key("box:jobs"), key("mail:jobs")] + jobKeys,
            [RedisArgument(listen), RedisArgument(request)] + arguments)
        let parts = reply.array ?? []
        let jobs = TakenJob.all(in: Array(parts.dropFirst(5)))
        return (parts.first?.string, parts.count > 4 ? parts[4].string : nil, jobs)
    }
}
