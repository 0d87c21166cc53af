// Workers that share a mailbox, with a real server: each message is run, by one worker at a time, whoever dies.
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
    @Suite("Workers that share a mailbox", .serialized)
    struct WorkTests {
        @Test("each message is run once, by one of several workers, and nothing is left")
        func shared() async throws {
            try await withServer { _, redis, other in
                let log = JobLog()
                let workers = Locked<[Int: Int]>([:])
                try await withPostOffice(redis: redis, configuration: patientOffice()) { one in
                    try await withPostOffice(redis: other, configuration: patientOffice()) { two in
                        for start in stride(from: 0, to: 1000, by: 100) {
                            try await one.send((start..<start + 100).map { Message(text: "job \($0)") }, to: ["jobs"])
                        }
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for number in 0..<4 {
                                let mailbox = try (number.isMultiple(of: 2) ? one : two).mailbox("jobs")
                                group.addTask {
                                    try await mailbox.work(quickWork()) { job in
                                        try await log.run(job) {
                                            workers.withLock { $0[number, default: 0] += 1 }
                                            // Each worker gets some, however long it takes to begin.
                                            while workers.withLock({ $0.count < 4 }) {
                                                try await Task.sleep(for: .milliseconds(2))
                                            }
                                        }
                                    }
                                }
                            }
                            try await until("half are done") { log.done >= 500 }
                            // Some that are sent while workers wait.
                            for number in 1000..<1010 { try await two.send("job \(number)", to: "jobs") }
                            try await until("all are done") { log.done == 1010 }
                            group.cancelAll()
                            try await group.waitForAll()
                        }
                        #expect(log.runs.values.allSatisfy { $0 == 1 })
                        #expect(workers.withLock { $0.count } == 4)
                        #expect(try await isWithoutJobs(one, "jobs"))
                    }
                }
            }
        }

        @Test("a job that fails is tried again, and kept with its reason when it has failed for good")
        func failures() async throws {
            try await withServer { _, redis, other in
                let attempts = Locked<[String: [Int]]>([:])
                var configuration = quickWork()
                configuration.attempts = 3
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await office.send(["good", "twice", "bad", "rejected"].map { Message(text: $0) }, to: ["jobs"])
                    let work = Task { [configuration] in
                        try await office.mailbox("jobs").work(configuration) { job in
                            let text = job.message.text
                            attempts.withLock { $0[text, default: []].append(job.attempt) }
                            if text == "rejected" { throw JobRejection("not today") }
                            if text == "bad" || text == "twice" && job.attempt < 2 { throw JobFailure() }
                        }
                    }
                    let dead = RedisArgument.string("ql:{default:0}:dead:jobs")
                    try await until("two have failed for good") { try await other.send("ZCARD", dead).integer == 2 }
                    try await until("the others are done") {
                        attempts.withLock { $0["twice"] == [1, 2] && $0["good"] == [1] }
                    }
                    work.cancel()
                    try await work.value
                    #expect(attempts.withLock { $0["bad"] } == [1, 2, 3])
                    #expect(attempts.withLock { $0["rejected"] } == [1])
                    let mailbox = try office.mailbox("jobs")
                    let failed = try await mailbox.jobs(.failed)
                    #expect(Set(failed.map(\.message.text)) == ["bad", "rejected"])
                    #expect(Set(failed.map(\.reason)) == ["not today", "JobFailure()"])
                    #expect(Set(failed.map(\.attempts)) == [1, 3])
                    // Tried again, or forgotten.
                    #expect(try await mailbox.retryJobs(failed.map(\.id)) == 2)
                    #expect(try await mailbox.jobs(.failed) == [])
                    #expect(Set(try await mailbox.jobs(.waiting).map(\.message.text)) == ["bad", "rejected"])
                    #expect(try await mailbox.cancelJobs(failed.map(\.id)) == 2)
                    #expect(try await mailbox.cancelJobs(failed.map(\.id)) == 0)
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test(
            "jobs with the same order key run one at a time, in order, also when they fail, and others run beside them")
        func order() async throws {
            try await withServer { _, redis, _ in
                let log = JobLog()
                let keys = ["a", "b", "c", "d", "e"]
                var configuration = quickWork(16)
                configuration.attempts = 1000
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    for number in 0..<40 {
                        let messages = keys.map { key in
                            var message = Message(text: "\(key) \(number)")
                            message.orderKey = key
                            return message
                        }
                        try await office.send(messages, to: ["jobs"])
                    }
                    for number in 0..<50 { try await office.send("free \(number)", to: "jobs") }
                    let work = (0..<3).map { _ in
                        Task { [configuration] in
                            try await office.mailbox("jobs").work(configuration) { job in
                                try await log.run(job) {
                                    try await Task.sleep(for: .milliseconds(Int.random(in: 0..<3)))
                                    if Int.random(in: 0..<10) == 0 { throw JobFailure() }
                                }
                            }
                        }
                    }
                    try await until("all are done") { log.done == 250 }
                    for task in work { task.cancel() }
                    for task in work { try await task.value }
                    for key in keys { #expect(log.order[key] == Array(0..<40), "\(key)") }
                    #expect(log.overlaps == [])
                    #expect(log.most > 5)
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test("a worker that stops waits for its jobs, and gives back those that do not end")
        func stops() async throws {
            try await withServer { _, redis, _ in
                var configuration = quickWork()
                configuration.grace = .milliseconds(300)
                let (started, ended, isStopping) = (Locked(0), Locked(0), Locked(false))
                defer { isStopping.withLock { $0 = true } }
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await office.send(["short", "long"].map { Message(text: $0) }, to: ["jobs"])
                    let first = Task { [configuration] in
                        try await office.mailbox("jobs").work(configuration) { job in
                            started.withLock { $0 += 1 }
                            if job.message.text == "long" { try await Task.sleep(for: .seconds(3600)) }
                            while !isStopping.withLock({ $0 }) { await Task.yield() }
                            ended.withLock { $0 += 1 }
                        }
                    }
                    try await until("both run") { started.withLock { $0 } == 2 }
                    first.cancel()
                    isStopping.withLock { $0 = true }
                    try await first.value
                    #expect(ended.withLock { $0 } == 1)
                    // At once, and as the first attempt.
                    let attempts = Locked<[Int]>([])
                    let second = Task {
                        try await office.mailbox("jobs").work(quickWork()) { job in
                            attempts.withLock { $0.append(job.attempt) }
                        }
                    }
                    try await until("it is run again") { attempts.withLock { $0 } == [1] }
                    second.cancel()
                    try await second.value
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test(
            "a job that is cancelled while it runs has its handler cancelled, and the next one with its order key follows"
        )
        func cancelled() async throws {
            try await withServer { _, redis, _ in
                let log = JobLog()
                let isCancelled = Locked(false)
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    for number in 0..<4 {
                        var message = Message(text: "k \(number)")
                        message.orderKey = "k"
                        try await office.send(message, to: "jobs")
                    }
                    let work = Task {
                        try await mailbox.work(quickWork(ttl: .seconds(15))) { job in
                            try await log.run(job) {
                                guard job.message.text == "k 0" else { return }
                                do { try await Task.sleep(for: .seconds(3600)) } catch {
                                    isCancelled.withLock { $0 = true }
                                    throw error
                                }
                            }
                        }
                    }
                    var running: [JobInfo] = []
                    try await until("the first one runs") {
                        running = try await mailbox.jobs(.running)
                        return !running.isEmpty
                    }
                    #expect(running.map(\.message.text) == ["k 0"] && running.map(\.orderKey) == ["k"])
                    #expect(try await mailbox.cancelJobs(running.map(\.id)) == 1)
                    try await until("the others are done") { log.done == 3 }
                    #expect(isCancelled.withLock { $0 })
                    #expect(log.order["k"] == [1, 2, 3] && log.overlaps == [])
                    work.cancel()
                    try await work.value
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test("a device of the mailbox that only reads keeps the messages that workers are done with")
        func otherDevices() async throws {
            try await withServer { _, redis, _ in
                let log = JobLog()
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    #expect(try await mailbox.look(device: "audit").word == "timedOut")
                    for number in 0..<10 { try await office.send("job \(number)", to: "jobs") }
                    let work = Task { try await mailbox.work(quickWork()) { job in try await log.run(job) {} } }
                    try await until("all are done") { log.done == 10 }
                    work.cancel()
                    try await work.value
                    let read = try await mailbox.look(device: "audit")
                    #expect(read.word == (0..<10).map { "job \($0)" }.joined(separator: " "))
                    try await mailbox.acknowledge(read.cursor, device: "audit")
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test("cancelling jobs one after the other never keeps the next one with their order key from running")
        func cancelledInARow() async throws {
            try await withServer { _, redis, _ in
                let ran = Locked<[String]>([])
                var configuration = quickWork(1)
                configuration.pause = .seconds(3600)...(.seconds(3600))
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    for number in 0..<6 {
                        var message = Message(text: "\(number)")
                        message.orderKey = "k"
                        try await office.send(message, to: "jobs")
                    }
                    let work = Task { [configuration] in
                        try await mailbox.work(configuration) { job in
                            ran.withLock { $0.append(job.message.text) }
                            if job.message.text == "0" { throw JobFailure() }
                        }
                    }
                    // The first one waits after its failure, and the others wait for it.
                    try await until("the first one has failed") {
                        try await mailbox.jobs(.waiting).first?.attempts == 1
                    }
                    try await mailbox.pauseWork()
                    for number in 0..<4 {
                        let waiting = try await mailbox.jobs(.waiting)
                        #expect(waiting.map(\.message.text) == ["\(number)"])
                        #expect(try await mailbox.cancelJobs(waiting.map(\.id)) == 1)
                    }
                    try await mailbox.resumeWork()
                    try await until("the others have run") { ran.withLock { $0 } == ["0", "4", "5"] }
                    work.cancel()
                    try await work.value
                    #expect(try await isWithoutJobs(office, "jobs"))
                }
            }
        }

        @Test(
            "when too many jobs wait for an order key, the next messages stay in the mailbox, and are run later in order"
        )
        func manyWithOneKey() async throws {
            try await withServer { _, redis, _ in
                let (log, mayRun) = (JobLog(), Locked(false))
                let calls = Atomic(0)
                let counted = InterposedRedis(
                    redis, before: { _ in calls.add(1, ordering: .relaxed) }, after: { _ in })
                try await withPostOffice(redis: redis, configuration: patientOffice()) { sender in
                    for start in stride(from: 0, to: 1200, by: 100) {
                        let messages = (start..<start + 100).map { number in
                            var message = Message(text: "k \(number)")
                            message.orderKey = "k"
                            return message
                        }
                        try await sender.send(messages, to: ["jobs"])
                    }
                    try await withPostOffice(redis: counted, configuration: patientOffice()) { office in
                        let mailbox = try office.mailbox("jobs")
                        let work = Task {
                            try await mailbox.work(quickWork()) { job in
                                while !mayRun.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
                                try await log.run(job) {}
                            }
                        }
                        // One runs, and 1,024 wait for it.
                        try await until("no more are taken") { try await sender.mailbox("jobs").count == 175 }
                        // It asks again each second, and not as fast as it can.
                        let start = ContinuousClock.now
                        let before = calls.load(ordering: .relaxed)
                        try await until("it has asked again") { calls.load(ordering: .relaxed) >= before + 8 }
                        #expect(ContinuousClock.now - start > .seconds(1))
                        mayRun.withLock { $0 = true }
                        for number in stride(from: 100, through: 1200, by: 100) {
                            try await until("\(number) are done") { log.done >= number }
                        }
                        work.cancel()
                        try await work.value
                        #expect(log.order["k"] == Array(0..<1200) && log.overlaps == [])
                        #expect(try await isWithoutJobs(office, "jobs"))
                    }
                }
            }
        }

        @Test(
            "order keys are checked before a message is sent",
            arguments: ["", "a\nb", String(repeating: "k", count: 256)])
        func invalidOrderKey(key: String) async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    var message = Message(text: "x")
                    message.orderKey = key
                    do {
                        try await office.send(message, to: "jobs")
                        Issue.record("it was sent")
                    } catch let error as QueueListenError { #expect(error.code == .invalidArgument) }
                }
            }
        }
    }
}
