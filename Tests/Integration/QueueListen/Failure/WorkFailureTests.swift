// Workers that die, lose their connections or their mailbox, with a real server.
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
    @Suite("Workers that fail", .serialized)
    struct WorkFailureTests {
        @Test("the jobs of a worker that cannot reach Redis run elsewhere, and it cancels them before")
        func workerDies() async throws {
            try await withServer { _, redis, other in
                let isCut = Atomic(false)
                let cut = InterposedRedis(
                    redis,
                    before: { _ in
                        if isCut.load(ordering: .relaxed) { throw RedisError(.connectionLost, "cut") }
                    }, after: { _ in })
                let (running, cancelled) = (Locked<Set<String>>([]), Locked<Set<String>>([]))
                let early = Locked<[String]>([])
                let log = JobLog()
                try await withPostOffice(redis: cut, configuration: patientOffice()) { lost in
                    try await withPostOffice(redis: other, configuration: patientOffice()) { office in
                        for number in 0..<8 { try await office.send("job \(number)", to: "jobs") }
                        let first = Task {
                            try await lost.mailbox("jobs").work(quickWork(ttl: .seconds(10))) { job in
                                running.withLock { _ = $0.insert(job.message.text) }
                                do { try await Task.sleep(for: .seconds(3600)) } catch {
                                    cancelled.withLock { _ = $0.insert(job.message.text) }
                                    throw error
                                }
                            }
                        }
                        try await until("it runs all") { running.withLock { $0.count } == 8 }
                        isCut.store(true, ordering: .relaxed)
                        #expect(cancelled.withLock { $0 } == [])
                        let second = Task {
                            try await office.mailbox("jobs").work(quickWork(ttl: .seconds(15))) { job in
                                if !cancelled.withLock({ $0.contains(job.message.text) }) {
                                    early.withLock { $0.append(job.message.text) }
                                }
                                try await log.run(job) {}
                            }
                        }
                        try await until("the other one has run them") { log.done == 8 }
                        #expect(early.withLock { $0 } == [])
                        #expect(log.runs.values.allSatisfy { $0 == 1 })
                        for task in [first, second] { task.cancel() }
                        try await second.value
                        isCut.store(false, ordering: .relaxed)
                        try await first.value
                        #expect(try await isWithoutJobs(office, "jobs"))
                    }
                }
            }
        }

        @Test("replies that are lost neither lose a job nor run it twice", arguments: [1, 8])
        func lostReplies(concurrency: Int) async throws {
            try await withServer { _, redis, other in
                let lossy = InterposedRedis.losing(every: 3, of: redis, withKeysThatContain: ":work:")
                let log = JobLog()
                try await withPostOffice(redis: lossy, configuration: patientOffice()) { office in
                    let sender = try PostOffice(redis: other, configuration: patientOffice())
                    for number in 0..<40 { try await sender.send("job \(number)", to: "jobs") }
                    let work = Task {
                        try await office.mailbox("jobs").work(quickWork(concurrency, ttl: .seconds(60))) { job in
                            try await log.run(job) {}
                        }
                    }
                    try await until("all are done") { log.done == 40 }
                    try await until("all are reported") { try await isWithoutJobs(sender, "jobs") }
                    work.cancel()
                    try await work.value
                    #expect(log.runs.values.allSatisfy { $0 == 1 })
                }
            }
        }

        @Test("a job whose workers die in each attempt fails for good, and is not run again")
        func attemptsOfDeadWorkers() async throws {
            try await withServer { _, redis, other in
                let isCut = Atomic(false)
                let cut = InterposedRedis(
                    redis,
                    before: { _ in
                        if isCut.load(ordering: .relaxed) { throw RedisError(.connectionLost, "cut") }
                    }, after: { _ in })
                let (runs, others) = (Locked(0), Locked(0))
                try await withPostOffice(redis: cut, configuration: patientOffice()) { lost in
                    try await withPostOffice(redis: other, configuration: patientOffice()) { office in
                        try await office.send("job", to: "jobs")
                        var configuration = quickWork(ttl: .seconds(1))
                        configuration.attempts = 1
                        let first = Task { [configuration] in
                            try await lost.mailbox("jobs").work(configuration) { _ in
                                runs.withLock { $0 += 1 }
                                try await Task.sleep(for: .seconds(3600))
                            }
                        }
                        try await until("it runs") { runs.withLock { $0 } == 1 }
                        isCut.store(true, ordering: .relaxed)
                        let second = Task { [configuration] in
                            try await office.mailbox("jobs").work(configuration) { _ in others.withLock { $0 += 1 } }
                        }
                        let mailbox = try office.mailbox("jobs")
                        try await until("it has failed") { try await mailbox.workStatus().failed == 1 }
                        #expect(try await mailbox.jobs(.failed)[0].reason?.contains("in each attempt") == true)
                        #expect(others.withLock { $0 } == 0)
                        for task in [first, second] { task.cancel() }
                        try await second.value
                        isCut.store(false, ordering: .relaxed)
                        try await first.value
                    }
                }
            }
        }

        @Test("deleting a mailbox cancels its jobs, and what is sent then is run")
        func deleted() async throws {
            try await withServer { _, redis, _ in
                let (started, cancelled) = (Locked<Set<String>>([]), Locked<Set<String>>([]))
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    for number in 0..<10 { try await office.send("old \(number)", to: "jobs") }
                    let work = Task {
                        try await mailbox.work(quickWork(ttl: .seconds(15))) { job in
                            started.withLock { _ = $0.insert(job.message.text) }
                            guard job.message.text.hasPrefix("old") else { return }
                            do { try await Task.sleep(for: .seconds(3600)) } catch {
                                cancelled.withLock { _ = $0.insert(job.message.text) }
                                throw error
                            }
                        }
                    }
                    try await until("some run") { started.withLock { $0.count } == 8 }
                    try await mailbox.delete()
                    #expect(try await mailbox.workStatus().running == 0)
                    try await until("they are cancelled") { cancelled.withLock { $0.count } == 8 }
                    try await office.send("new", to: "jobs")
                    try await until("it is run") { started.withLock { $0.contains("new") } }
                    work.cancel()
                    try await work.value
                    #expect(started.withLock { $0.count } == 9)
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test("workers take, run, retry and end jobs, and operators steer them, although Redis has no memory left")
        func noMemory() async throws {
            try await withServer { _, redis, other in
                let log = JobLog()
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    for number in 0..<20 { try await office.send("job \(number)", to: "jobs") }
                    _ = try await other.send("CONFIG", "SET", "maxmemory", "1")
                    try await mailbox.pauseWork()
                    let work = Task {
                        try await mailbox.work(quickWork()) { job in
                            if job.message.text == "job 7" { throw JobRejection("seven") }
                            if job.attempt == 1 { throw JobFailure() }
                            try await log.run(job) {}
                        }
                    }
                    try await mailbox.resumeWork()
                    try await until("all but one are done") { log.done == 19 }
                    try await until("that one has failed") { try await mailbox.workStatus().failed == 1 }
                    let failed = try await mailbox.jobs(.failed)
                    #expect(failed.map(\.reason) == ["seven"])
                    #expect(try await mailbox.retryJobs(failed.map(\.id)) == 1)
                    try await until("it has failed again") { try await mailbox.workStatus().failed == 1 }
                    #expect(try await mailbox.cancelJobs(failed.map(\.id)) == 1)
                    work.cancel()
                    try await work.value
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test(
            "keys of another program in place of the jobs are refused, and not changed",
            arguments: ["work", "jobs", "dead"])
        func foreign(kind: String) async throws {
            try await withServer { _, redis, other in
                let key = RedisArgument.string("ql:{default:0}:\(kind):jobs")
                _ = try await other.send("SET", key, "of another program")
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    let id = "0123456789abcdef"
                    let calls: [@Sendable () async throws -> Void] = [
                        { try await mailbox.work { _ in } }, { _ = try await mailbox.jobs(.waiting) },
                        { _ = try await mailbox.workStatus() }, { try await mailbox.retryJobs([id]) },
                        { try await mailbox.cancelJobs([id]) }, { try await mailbox.pauseWork() },
                        { try await mailbox.resumeWork() }, { try await mailbox.delete() },
                    ]
                    for (number, call) in calls.enumerated() {
                        let error = await #expect(throws: QueueListenError.self, "call \(number)") { try await call() }
                        #expect(error?.code == .wrongType, "call \(number)")
                    }
                    #expect(try await other.send("GET", key).string == "of another program")
                }
            }
        }
    }
}
