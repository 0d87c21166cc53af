// Jobs that are finished together with their effects, and services with handlers by type.
import CoordinationBase
import Foundation
import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Jobs with an effect in Redis", .serialized)
    struct WorkFinishTests {
        private static let book = JobScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")

        @Test("the effect happens once, although replies are lost and handlers fail afterwards")
        func once() async throws {
            try await withServer { _, redis, other in
                let lossy = InterposedRedis.losing(every: 3, of: redis)
                let runs = Locked(0)
                try await withPostOffice(redis: lossy, configuration: patientOffice()) { office in
                    let sender = try PostOffice(redis: other, configuration: patientOffice())
                    for _ in 0..<50 { try await sender.send("1", to: "jobs") }
                    let work = Task {
                        try await office.mailbox("jobs").work(quickWork(ttl: .seconds(60))) { job in
                            runs.withLock { $0 += 1 }
                            if job.attempt == 1, Bool.random() { throw JobFailure() }
                            try await job.finish(
                                with: Self.book, keys: ["balance"], arguments: [.string(job.message.text)])
                            // Again it has no effect.
                            do {
                                let again = try await job.finish(with: Self.book, keys: ["balance"], arguments: ["1"])
                                #expect(again == nil)
                            } catch { Issue.record("the second call fails: \(error)") }
                            throw JobFailure()
                        }
                    }
                    try await until("all are done") { try await other.send("GET", "balance").integer == 50 }
                    try await until("all are reported") { try await isWithoutJobs(sender, "jobs") }
                    work.cancel()
                    try await work.value
                    #expect(try await other.send("GET", "balance").integer == 50)
                    #expect(try await sender.mailbox("jobs").workStatus().failed == 0)
                    #expect(runs.withLock { $0 } > 50)
                }
            }
        }

        @Test("a worker that has lost the job has no effect, and a finished job of a dead worker is not run again")
        func late() async throws {
            try await withServer { _, redis, other in
                let isCut = Atomic(false)
                let cut = InterposedRedis(
                    redis,
                    before: { keys in
                        // What finishes a job still arrives.
                        if isCut.load(ordering: .relaxed), !keys.contains("balance") {
                            throw RedisError(.connectionLost, "cut")
                        }
                    }, after: { _ in })
                let (results, others) = (Locked<[String]>([]), Locked<[String]>([]))
                try await withPostOffice(redis: cut, configuration: patientOffice()) { lost in
                    try await withPostOffice(redis: other, configuration: patientOffice()) { office in
                        try await office.send([Message(text: "early"), Message(text: "late")], to: ["jobs"])
                        let first = Task {
                            try await lost.mailbox("jobs").work(quickWork(ttl: .seconds(6))) { job in
                                if job.message.text == "early" {
                                    try await job.finish(with: Self.book, keys: ["balance"], arguments: ["1"])
                                    results.withLock { $0.append("early") }
                                }
                                // It ignores that it is cancelled.
                                await Task {
                                    try? await until("the others are done") { others.withLock { $0.count } == 1 }
                                    if job.message.text == "early" { return }
                                    do throws(QueueListenError) {
                                        try await job.finish(with: Self.book, keys: ["balance"], arguments: ["100"])
                                    } catch { results.withLock { $0.append("\(error.code)") } }
                                }
                                .value
                            }
                        }
                        try await until("one is finished") { results.withLock { $0 } == ["early"] }
                        isCut.store(true, ordering: .relaxed)
                        let second = Task {
                            try await office.mailbox("jobs").work(quickWork(ttl: .seconds(1))) { job in
                                try await job.finish(with: Self.book, keys: ["balance"], arguments: ["10"])
                                others.withLock { $0.append(job.message.text) }
                            }
                        }
                        try await until("the first one has tried") { results.withLock { $0.count } >= 2 }
                        #expect(results.withLock { $0 } == ["early", "superseded"])
                        try await until("nothing is left") { try await isWithoutJobs(office, "jobs") }
                        for task in [first, second] { task.cancel() }
                        try await second.value
                        isCut.store(false, ordering: .relaxed)
                        try await first.value
                        #expect(others.withLock { $0 } == ["late"])
                        #expect(try await other.send("GET", "balance").integer == 11)
                    }
                }
            }
        }

        @Test("an effect that fails leaves the job unfinished, and its error is that of the script")
        func fails() async throws {
            try await withServer { _, redis, _ in
                let codes = Locked<[QueueListenError.Code]>([])
                _ = try await redis.send("LPUSH", "balance", "x")
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await office.send("1", to: "jobs")
                    var configuration = quickWork()
                    configuration.attempts = 2
                    let work = Task { [configuration] in
                        try await office.mailbox("jobs").work(configuration) { job in
                            do throws(QueueListenError) {
                                try await job.finish(with: Self.book, keys: ["balance"], arguments: ["1"])
                            } catch {
                                codes.withLock { $0.append(error.code) }
                                throw error
                            }
                        }
                    }
                    try await until("it has failed") { try await office.mailbox("jobs").workStatus().failed == 1 }
                    #expect(codes.withLock { $0 } == [.serverError, .serverError])
                    work.cancel()
                    try await work.value
                }
            }
        }

        @Test("an effect that returns an error leaves the job unfinished")
        func refuses() async throws {
            try await withServer { _, redis, _ in
                let withdraw = JobScript(
                    """
                    local balance = tonumber(redis.call('GET', KEYS[1]) or '0')
                    if balance < tonumber(ARGV[1]) then return redis.error_reply('too little') end
                    return redis.call('DECRBY', KEYS[1], ARGV[1])
                    """)
                let errors = Locked<[String]>([])
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await office.send("7", to: "jobs")
                    let work = Task {
                        try await office.mailbox("jobs").work(quickWork()) { job in
                            do {
                                try await job.finish(
                                    with: withdraw, keys: ["balance"], arguments: [.string(job.message.text)])
                            } catch {
                                errors.withLock { $0.append("\(error)") }
                                if job.attempt == 2 { _ = try await redis.send("SET", "balance", "10") }
                                throw error
                            }
                        }
                    }
                    try await until("it is done") { try await isWithoutJobs(office, "jobs") }
                    let seen = errors.withLock { $0 }
                    #expect(seen.count == 2 && seen.allSatisfy { $0.contains("too little") })
                    #expect(try await redis.send("GET", "balance").bytes == Array("3".utf8))
                    work.cancel()
                    try await work.value
                }
            }
        }

        @Test("when a failover loses the effect, but not that the job runs, it runs again", arguments: [false, true])
        func lostEffect(throws: Bool) async throws {
            try await withServer { _, redis, other in
                let runs = Locked(0)
                let work = RedisArgument.string("ql:{default:0}:work:jobs")
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await office.send("1", to: "jobs")
                    let working = Task {
                        try await office.mailbox("jobs").work(quickWork(ttl: .seconds(60))) { job in
                            runs.withLock { $0 += 1 }
                            let before = try await other.send("DUMP", work).bytes ?? []
                            try await job.finish(with: Self.book, keys: ["balance"], arguments: ["1"])
                            guard runs.withLock({ $0 }) == 1 else { return }
                            _ = try await other.send("RESTORE", work, 0, .bytes(before), "REPLACE")
                            _ = try await other.send("DEL", "balance")
                            if `throws` { throw JobRejection("afterwards") }
                        }
                    }
                    try await until("it has its effect again") { try await other.send("GET", "balance").integer == 1 }
                    try await until("it is done") { try await isWithoutJobs(office, "jobs") }
                    #expect(runs.withLock { $0 } == 2)
                    #expect(try await office.mailbox("jobs").workStatus().failed == 0)
                    working.cancel()
                    try await working.value
                }
            }
        }

        @Test("a script with a variable that is not local fails, and one that is named as ours changes nothing of ours")
        func globals() async throws {
            try await withServer { _, redis, _ in
                let scripts = [
                    JobScript("field = 'other'\nreturn redis.call('INCR', KEYS[1])"),
                    JobScript("local field, work, record = 1, 2, 3\nreturn redis.call('INCR', KEYS[1])"),
                ]
                let errors = Locked<[String]>([])
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await office.send("1", to: "jobs")
                    let work = Task {
                        try await office.mailbox("jobs").work(quickWork()) { job in
                            do {
                                let script = scripts[job.attempt == 1 ? 0 : 1]
                                try await job.finish(with: script, keys: ["balance"])
                                #expect(try await job.finish(with: script, keys: ["balance"]) == nil)
                            } catch {
                                errors.withLock { $0.append("\(error)") }
                                throw error
                            }
                        }
                    }
                    try await until("it is done") { try await isWithoutJobs(office, "jobs") }
                    #expect(errors.withLock { $0.count == 1 && $0[0].contains("the script of the job has failed") })
                    #expect(try await redis.send("GET", "balance").bytes == Array("1".utf8))
                    work.cancel()
                    try await work.value
                }
            }
        }

        private struct Resizing: Codable {
            var width: Int
        }

        @Test("a service calls the handler of the type, and what it cannot handle fails for good at once")
        func types() async throws {
            try await withServer { _, redis, _ in
                let log = Locked<[String]>([])
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    var service = WorkerService(try office.mailbox("jobs"), quickWork())
                    service.handle(Resizing.self, type: "resize") { resizing, job in
                        log.withLock { $0.append("resize \(resizing.width) \(job.attempt)") }
                    }
                    service.handle(type: "delete") { job in log.withLock { $0.append("delete \(job.message.text)") } }
                    let messages = [
                        try Message(json: Resizing(width: 7), type: "resize"), Message(text: "a", type: "delete"),
                        Message(text: "{", type: "resize"), Message(text: "b", type: "other"), Message(text: "c"),
                    ]
                    try await office.send(messages, to: ["jobs"])
                    let work = Task { [service] in try await service.run() }
                    let mailbox = try office.mailbox("jobs")
                    try await until("three have failed") { try await mailbox.workStatus().failed == 3 }
                    try await until("two are done") { log.withLock { $0.count } == 2 }
                    #expect(Set(log.withLock { $0 }) == ["resize 7 1", "delete a"])
                    let failed = try await mailbox.jobs(.failed)
                    #expect(failed.allSatisfy { $0.attempts == 1 })
                    #expect(failed.count { $0.reason?.contains("has no handler") == true } == 2)
                    work.cancel()
                    try await work.value
                }
            }
        }
    }
}
