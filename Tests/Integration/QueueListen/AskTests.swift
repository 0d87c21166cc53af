// Questions to whoever handles the messages of a mailbox.
import CoordinationBase
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Questions and their answers", .serialized)
    struct AskTests {
        /// Runs a worker that answers with what `answer` returns.
        private func working<Result>(
            _ mailbox: Mailbox, _ configuration: WorkConfiguration = quickWork(),
            _ answer: @escaping @Sendable (Job) async throws -> String, _ body: () async throws -> Result
        ) async throws -> Result {
            let work = Task {
                try await mailbox.work(configuration) { job in
                    try await job.answer(with: Message(text: try await answer(job)))
                }
            }
            let result: Result
            do { result = try await body() } catch {
                work.cancel()
                throw error
            }
            work.cancel()
            try await work.value
            return result
        }

        private func code(_ body: () async throws -> Void) async -> QueueListenError? {
            do { try await body() } catch { return error as? QueueListenError }
            return nil
        }

        @Test("each of many questions gets its own answer, from workers of another process", arguments: [1, 4])
        func many(partitions: Int) async throws {
            try await withServer { _, redis, other in
                var configuration = patientOffice()
                configuration.partitions = partitions
                try await withPostOffice(redis: redis, configuration: configuration) { one in
                    try await withPostOffice(redis: other, configuration: configuration) { two in
                        try await working(try two.mailbox("squares")) { job in
                            try await Task.sleep(for: .milliseconds(Int.random(in: 0...5)))
                            return "\(Int(job.message.text)! * Int(job.message.text)!)"
                        } _: {
                            try await withThrowingTaskGroup(of: (Int, String).self) { group in
                                for number in 0..<200 {
                                    group.addTask {
                                        let answer = try await one.ask(
                                            Message(text: "\(number)"), to: "squares", timeout: patience)
                                        return (number, answer.text)
                                    }
                                }
                                for try await (number, answer) in group { #expect(answer == "\(number * number)") }
                            }
                        }
                        #expect(try await isWithoutJobs(two, "squares"))
                        #expect(one.answerDesk.count == 0)
                    }
                }
            }
        }

        private struct Question: Codable {
            var width: Int
        }
        private struct Answer: Codable {
            var area: Int
        }

        @Test("a service answers questions by their type, and says why it cannot")
        func types() async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    var configuration = quickWork()
                    configuration.attempts = 2
                    var service = WorkerService(try office.mailbox("areas"), configuration)
                    service.answer(Question.self, type: "area") { question, _ in
                        if question.width < 0 { throw JobRejection("less than nothing\nis nothing") }
                        if question.width == 0 { throw JobFailure() }
                        return Answer(area: question.width * question.width)
                    }
                    let work = Task { [service] in try await service.run() }
                    func ask(_ width: Int, type: String = "area") async throws -> Int {
                        try await office.ask(
                            Message(json: Question(width: width), type: type), to: "areas", timeout: patience
                        ).decode(as: Answer.self).area
                    }
                    #expect(try await ask(7) == 49)
                    let rejected = await code { _ = try await ask(-1) }
                    #expect(rejected?.code == .failed && rejected?.message.contains("less than nothingis") == true)
                    let failed = await code { _ = try await ask(0) }
                    #expect(failed?.code == .failed && failed?.message.contains("JobFailure") == true)
                    let unknown = await code { _ = try await ask(1, type: "volume") }
                    #expect(unknown?.code == .failed && unknown?.message.contains("no handler") == true)
                    work.cancel()
                    try await work.value
                }
            }
        }

        @Test("a question that nobody handles in time is not handled later, and its call says so")
        func late() async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let error = await code {
                        _ = try await office.ask(Message(text: "early"), to: "jobs", timeout: .seconds(3))
                    }
                    #expect(error?.code == .timedOut && error?.mayHaveRun == true)
                    try await until("it does not wait any more") { office.answerDesk.count == 0 }
                    try await until("the question has expired") { try await office.mailbox("jobs").peek().isEmpty }
                    let seen = Locked<[String]>([])
                    try await working(try office.mailbox("jobs")) { job in
                        seen.withLock { $0.append(job.message.text) }
                        return "yes"
                    } _: {
                        let answer = try await office.ask(Message(text: "now"), to: "jobs", timeout: patience)
                        #expect(answer.text == "yes")
                    }
                    #expect(seen.withLock { $0 } == ["now"])
                    let wrong = await code { _ = try await office.ask(Message(text: "x"), to: "jobs", timeout: .zero) }
                    #expect(wrong?.code == .invalidArgument)
                }
            }
        }

        @Test("a call that is cancelled ends at once, and its answer disturbs no other")
        func cancelled() async throws {
            try await withServer { _, redis, _ in
                let mayAnswer = Locked(false)
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await working(try office.mailbox("jobs")) { job in
                        while job.message.text == "slow", !mayAnswer.withLock({ $0 }) {
                            try await Task.sleep(for: .milliseconds(2))
                        }
                        return job.message.text
                    } _: {
                        let first = Task { try await office.ask(Message(text: "slow"), to: "jobs", timeout: patience) }
                        try await until("it runs") {
                            try await !office.mailbox("jobs").jobs(.running).isEmpty
                        }
                        first.cancel()
                        let error = await code { _ = try await first.value }
                        #expect(error?.code == .cancelled)
                        mayAnswer.withLock { $0 = true }
                        let second = try await office.ask(Message(text: "quick"), to: "jobs", timeout: patience)
                        #expect(second.text == "quick")
                    }
                }
            }
        }

        @Test("who asks is told when the job is cancelled, or fails without a reason")
        func unanswered() async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("jobs")
                    try await working(mailbox, quickWork(ttl: .seconds(30))) { job in
                        if job.message.text == "empty" { throw JobRejection("\n") }
                        try await Task.sleep(for: .seconds(3600))
                        return ""
                    } _: {
                        let empty = await code {
                            _ = try await office.ask(Message(text: "empty"), to: "jobs", timeout: patience)
                        }
                        #expect(empty?.code == .failed && empty?.message.contains("failed for good") == true)
                        let asking = Task { try await office.ask(Message(text: "x"), to: "jobs", timeout: patience) }
                        var running: [JobInfo] = []
                        try await until("it runs") {
                            running = try await mailbox.jobs(.running)
                            return !running.isEmpty
                        }
                        try await mailbox.cancelJobs(running.map(\.id))
                        let error = await code { _ = try await asking.value }
                        #expect(error?.code == .failed && error?.message.contains("cancelled") == true)
                        try await until("it does not wait any more") { office.answerDesk.count == 0 }
                        #expect(error?.mayHaveRun == true)
                    }
                }
            }
        }

        @Test("a call whose server does not answer ends with its timeout, or when it is cancelled")
        func silent() async throws {
            try await withServer { server, redis, _ in
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    try await server.pause()
                    let error = await code {
                        _ = try await office.ask(Message(text: "x"), to: "jobs", timeout: .milliseconds(100))
                    }
                    #expect(error?.code == .timedOut && error?.mayHaveRun == false)
                    let asking = Task { try await office.ask(Message(text: "x"), to: "jobs", timeout: patience) }
                    asking.cancel()
                    let cancelled = await code { _ = try await asking.value }
                    #expect(cancelled?.code == .cancelled && cancelled?.mayHaveRun == false)
                    try await server.resume()
                    #expect(try await office.mailbox("jobs").count == 0)
                }
            }
        }

        @Test("the first answer counts, although the job runs again and replies are lost on both sides")
        func again() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(
                    redis: InterposedRedis.losing(every: 3, of: redis), configuration: patientOffice()
                ) { one in
                    try await withPostOffice(
                        redis: InterposedRedis.losing(every: 3, of: other), configuration: patientOffice()
                    ) { two in
                        let answers = Locked<[String: [Bool]]>([:])
                        let work = Task {
                            try await two.mailbox("jobs").work(quickWork()) { job in
                                let isFirst = try await job.answer(with: Message(text: "\(job.attempt)"))
                                answers.withLock { $0[job.message.text, default: []].append(isFirst) }
                                if job.attempt == 1 { throw JobFailure() }
                            }
                        }
                        for number in 0..<20 {
                            let answer = try await one.ask(Message(text: "\(number)"), to: "jobs", timeout: patience)
                            #expect(answer.text == "1")
                        }
                        try await until("all have run twice") {
                            answers.withLock { $0.count == 20 && $0.values.allSatisfy { $0.count == 2 } }
                        }
                        #expect(answers.withLock { $0.values.allSatisfy { $0 == [true, false] } })
                        work.cancel()
                        try await work.value
                    }
                }
            }
        }

        @Test("a receiver answers, and who asks is told when a question has become a dead letter")
        func receiver() async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: patientOffice()) { office in
                    let mailbox = try office.mailbox("moves")
                    try await mailbox.register()
                    let pause: ClosedRange<Duration> = .milliseconds(1)...(.milliseconds(2))
                    var receiver = Receiver(
                        mailbox, onFailure: .deadLetter(to: "dead", afterAttempts: 2, pause: pause), onGap: { _ in })
                    receiver.handleOthers { message in
                        if message.text == "bad" { throw JobFailure() }
                        #expect(message.isQuestion)
                        #expect(try await office.answer(message, with: Message(text: "moved")))
                    }
                    let receiving = Task { [receiver] in try await receiver.run() }
                    let answer = try await office.ask(Message(text: "e2 e4"), to: "moves", timeout: patience)
                    #expect(answer.text == "moved")
                    let error = await code {
                        _ = try await office.ask(Message(text: "bad"), to: "moves", timeout: patience)
                    }
                    #expect(error?.code == .failed)
                    try await until("it is acknowledged") { try await mailbox.count == 0 }
                    receiving.cancel()
                    _ = await receiving.result
                    // A message that nobody asks needs no answer.
                    try await office.send("x", to: "moves")
                    let message = try #require(try await mailbox.peek().first)
                    #expect(!message.isQuestion)
                    #expect(try await !office.answer(message, with: Message(text: "y")))
                }
            }
        }

        @Test("answers arrive although Redis has lost everything while the question was handled")
        func flushed() async throws {
            try await withServer { _, redis, other in
                var configuration = patientOffice()
                // Redis has lost who is to be notified.
                configuration.recheckInterval = .seconds(1)
                try await withPostOffice(redis: redis, configuration: configuration) { office in
                    let mailbox = try office.mailbox("jobs")
                    let work = Task {
                        try await mailbox.work(quickWork()) { job in
                            // The worker may be found gone, and the handler cancelled, before it has answered.
                            try await Task {
                                _ = try await other.send("FLUSHALL")
                                try await job.answer(with: Message(text: "still"))
                            }.value
                        }
                    }
                    let answer = try await office.ask(Message(text: "x"), to: "jobs", timeout: patience)
                    #expect(answer.text == "still")
                    work.cancel()
                    try await work.value
                }
            }
        }

        @Test("the answers' mailbox expires, and is read only while somebody asks; without a post office nobody waits")
        func life() async throws {
            try await withServer { _, redis, other in
                let office = try PostOffice(redis: redis, configuration: patientOffice())
                let running = Task { await office.run() }
                try await working(try office.mailbox("jobs")) { _ in
                    "yes"
                } _: {
                    _ = try await office.ask(Message(text: "x"), to: "jobs", timeout: patience)
                    let box = RedisArgument.string("ql:{default:0}:box:\(office.answerDesk.mailbox)")
                    let life = try await other.send("PTTL", box).integer ?? 0
                    // An eighth more, so that not every use renews it.
                    #expect((3_000_000...4_100_000).contains(life))
                    #expect(office.answerDesk.isReading)
                    try await until("it is not read any more") { !office.answerDesk.isReading }
                    #expect(try await office.ask(Message(text: "y"), to: "jobs", timeout: patience).text == "yes")
                }
                let waiting = Task { try await office.ask(Message(text: "z"), to: "nobody", timeout: patience) }
                try await until("it waits") { try await office.mailbox("nobody").count == 1 }
                running.cancel()
                await running.value
                let error = await code { _ = try await waiting.value }
                #expect(error?.code == .stopped)
            }
        }
    }
}
