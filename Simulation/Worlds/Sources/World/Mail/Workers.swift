// Workers in a world: jobs that fail, last and are cancelled, in processes that die, stop and lose their connections.
import SimulatedRedis

@testable import CoordinationBase
@testable import QueueListen

/// The mailbox that workers of all processes share, and what they have done.
///
/// `@unchecked`: a world is used by one thread.
final class JobBook: @unchecked Sendable {
    static let mailbox = "jobs"
    static let attempts = 3

    /// One run of a job.
    struct Run {
        var process: SimulatedProcess
        var fence: UInt64
        var at: Time
        /// The number of losses then.
        var losses: Int
    }

    /// The runs under way, by what was sent, and by order key.
    var running: [String: Run] = [:]
    /// The runs that have succeeded, by what was sent.
    var done: [String: Run] = [:]
    /// What has failed for good, or may have.
    var failed: Set<String> = []
    /// What was cancelled.
    var cancelled: Set<String> = []
    /// Whether some jobs have an effect in Redis.
    let counted: Bool
    /// The keys of the jobs.
    let keys: [String]

    init(_ namespace: Namespace, counted: Bool) {
        self.counted = counted
        keys = MailboxKeys(namespace, partition: namespace.partition(of: Self.mailbox)).jobKeys(Self.mailbox)
    }

    /// The order key of a message, which its body determines.
    static func orderKey(of body: String) -> String? {
        let sum = body.utf8.reduce(0) { $0 + Int($1) } % 5
        return sum < 2 ? "key \(sum)" : nil
    }

    /// What was sent, as ``MailEntry/text``.
    static func text(of message: ReceivedMessage) -> String {
        MailEntry.occurrence(of: message.id).map { "\(message.text)@\($0)" } ?? message.text
    }

    /// The states of all jobs, by tag, and whether an order key or a job that waits is left.
    func left(_ server: SimulatedRedis) -> (states: [UInt8], keys: Int, waiting: Int) {
        var server = server
        let cells = server.execute("HGETALL", Bytes(keys[0])).elements?.compactMap(\.bytes?.array) ?? []
        var (states, orderKeys): ([UInt8], Int) = ([], 0)
        for at in stride(from: 0, to: cells.count - 1, by: 2) {
            if cells[at].starts(with: Array("j:".utf8)) { states.append(cells[at + 1][0]) }
            if cells[at].starts(with: Array("o:".utf8)) { orderKeys += 1 }
        }
        return (states, orderKeys, Int(server.execute("ZCARD", Bytes(keys[1])).integer ?? 0))
    }
}

/// One call of ``Mailbox/work(_:_:)``.
///
/// `@unchecked`: a world is used by one thread.
final class WorkerRun: @unchecked Sendable {
    private struct Failure: Error {}

    private let owner: MailProcess
    private unowned let world: World
    private let book: JobBook

    init(_ owner: MailProcess, _ book: JobBook) { (self.owner, world, self.book) = (owner, owner.mail.world, book) }

    /// Works for some time.
    func run(for time: Time) async {
        guard let mailbox = try? owner.office.mailbox(JobBook.mailbox) else { return }
        var configuration = WorkConfiguration()
        configuration.concurrency = Int.random(in: 1...4, using: &world.random)
        configuration.ttl = .seconds(world.random.isOne(in: 2) ? 2 : 4)
        configuration.attempts = JobBook.attempts
        configuration.pause = .milliseconds(20)...(.seconds(1))
        configuration.grace = .milliseconds(500)
        let task = owner.mail.executor.begin { [self, configuration] in
            do { try await mailbox.work(configuration) { [self] job in try await handle(job) } } catch {
                world.note("a worker ends: \(error)")
            }
        }
        owner.keep(task)
        let process = owner.process
        world.after(time) { _ in process.run { _ in task.cancel() } }
        await task.value
    }

    private func handle(_ job: Job) async throws {
        let text = JobBook.text(of: job.message)
        let run = JobBook.Run(process: owner.process, fence: job.fence, at: world.now, losses: world.judge.losses)
        world.judge { $0.hasChecked() }
        world.note("\(owner.process.name) runs \"\(text)\", attempt \(job.attempt), fence \(job.fence)")
        check(job, text, run)
        let names = [text] + (job.orderKey.map { ["order " + $0] } ?? [])
        for name in names { book.running[name] = run }
        defer {
            for name in names where book.running[name]?.fence == run.fence { book.running[name] = nil }
        }
        if job.attempt >= JobBook.attempts { book.failed.insert(text) }
        try await owner.client.sleep(
            .microseconds(world.random.time(100...(world.random.isOne(in: 10) ? 6_000_000 : 200_000))))
        if text.hasSuffix("7.0") { throw JobRejection(text) }
        if world.random.isOne(in: 8) { throw Failure() }
        if owner.process.isDead { return }
        if book.counted, text.hasSuffix(Self.countedSuffix) { try await count(job, run, text) }
        noteDone(run, text)
    }

    /// The server may have lost the run before it was done.
    private func noteDone(_ run: JobBook.Run, _ text: String) {
        book.done[text] = run
        book.done[text]?.at = world.now
    }

    /// Jobs whose texts end so have an effect in Redis.
    static let countedSuffix = "1.0"
    private static let counting = JobScript("return redis.call('INCR', KEYS[1])")

    /// Has the effect of a job, and finishes it.
    private func count(_ job: Job, _ run: JobBook.Run, _ text: String) async throws {
        try await job.finish(with: Self.counting, keys: ["effect \(text)"])
        noteDone(run, text)
        if world.random.isOne(in: 4) { try await owner.client.sleep(.milliseconds(300)) }
        if world.random.isOne(in: 4) { throw Failure() }
    }

    // MARK: The judge

    private func check(_ job: Job, _ text: String, _ run: JobBook.Run) {
        if job.orderKey != JobBook.orderKey(of: job.message.text) { fail("has another order key", text) }
        for name in [text] + (job.orderKey.map { ["order " + $0] } ?? []) {
            guard let other = book.running[name], !isExcused(other) else { continue }
            fail("runs although \(other.process.name) runs \"\(name)\" since \(other.at)", text)
        }
        if let earlier = book.done[text], !isExcused(earlier), isCalm(earlier) {
            fail("runs again although \(earlier.process.name) has done it at \(earlier.at)", text)
        }
        if text.hasSuffix("7.0") { book.failed.insert(text) }
        guard let key = job.orderKey, world.judge.losses == 0 else { return }
        for item in (owner.mail.ledger.stored[owner.mail.key(of: JobBook.mailbox)] ?? [:]).values
        where item.entry.index < job.message.index && item.entry.life == 0 && !item.isReplaced && !item.entry.isEmpty {
            let earlier = item.entry.text
            if JobBook.orderKey(of: item.entry.body) == key, book.done[earlier] == nil, !book.failed.contains(earlier),
                !book.cancelled.contains(earlier), !owner.mail.ledger.deletedJobs.contains(earlier),
                // The process that has finished it may have died before the reply.
                owner.mail.effects(of: earlier) == 0
            {
                fail("runs before \"\(earlier)\"", text)
            }
        }
    }

    /// Whether a run may go on although its process has lost the job: it died or was stopped, or the server has lost
    /// something, or was mistaken about the time.
    ///
    /// The server may have lost what it knew of the worker's life before the run, or have answered before the loss.
    private func isExcused(_ run: JobBook.Run) -> Bool {
        run.process.isDead || run.process.lastStopped >= run.at || run.losses != world.judge.losses
            || run.at < world.lastLoss + Self.longestLife || world.plan.faults.clockSteps > 0
    }

    /// The longest time to live of the workers, and a reply on its way.
    private static let longestLife: Time = 5_000_000

    /// Whether the process of a run can have reported it.
    private func isCalm(_ run: JobBook.Run) -> Bool {
        run.process.mail?.isCalm(for: world.now - run.at + 1) ?? false
    }

    private func fail(_ words: String, _ text: String) { world.violation("the job \"\(text)\" \(words)") }
}

extension MailTask {
    /// What operators do with jobs.
    func operate(_ mailbox: Mailbox, _ book: JobBook) async {
        let state = [JobInfo.State.waiting, .running, .failed].randomElement(using: &world.random)!
        guard let jobs = try? await mailbox.jobs(state), let job = jobs.randomElement(using: &world.random) else {
            return
        }
        await owner.pause(100...200_000)
        if state == .failed, world.random.isOne(in: 2) {
            _ = try? await mailbox.retryJobs(jobs.map(\.id))
        } else {
            book.cancelled.insert(JobBook.text(of: job.message))
            _ = try? await mailbox.cancelJobs([job.id])
        }
    }

    /// Works, or does what operators do.
    func work(_ book: JobBook) async {
        guard let mailbox = try? owner.office.mailbox(JobBook.mailbox) else { return }
        switch Int.random(in: 0..<8, using: &world.random) {
        case 0: await operate(mailbox, book)
        case 1:
            try? await mailbox.pauseWork()
            await owner.pause(100_000...3_000_000)
            try? await mailbox.resumeWork()
        default: await WorkerRun(owner, book).run(for: world.random.time(500_000...40_000_000))
        }
    }
}

extension MailWorld {
    /// Whether all jobs are done, or have failed for good.
    var areJobsDone: Bool {
        guard let book, let record = ledger.boxes[key(of: JobBook.mailbox)]?.record else { return true }
        let left = book.left(world.servers.master)
        let isTaken = record.from == record.last || record.device("workers")?.index == record.last
        return isTaken && left.waiting == 0 && left.states.allSatisfy { $0 == 4 }
    }

    /// What is left of the jobs, in words.
    var jobsLeft: String {
        guard let book, !areJobsDone else { return "" }
        let record = ledger.boxes[key(of: JobBook.mailbox)]?.record
        let left = book.left(world.servers.master)
        return ", jobs: \((record?.last ?? 0) - (record?.from ?? 0)) messages, \(left.waiting) wait, states "
            + "\(left.states), \(left.keys) order keys"
    }

    /// How often a job has had its effect.
    fileprivate func effects(of text: String) -> Int {
        var server = world.servers.master
        return Int(server.execute("GET", Bytes("effect \(text)")).bytes?.text ?? "") ?? 0
    }

    /// The effect of a job has happened once, or for each time that Redis has lost and got the message again.
    private func checkEffect(_ text: String, stored: Int) {
        guard let book else { return }
        let count = effects(of: text)
        let isExcused = book.failed.contains(text) || book.cancelled.contains(text)
        if count > stored || count == 0 && !isExcused {
            world.violation("the job \"\(text)\" has had its effect \(count) times")
        }
    }

    /// Every message for workers was done, has failed for good, or was cancelled.
    func checkJobs() {
        guard let book else { return }
        let box = key(of: JobBook.mailbox)
        if book.left(world.servers.master).keys > 0 { world.violation("an order key is left") }
        for (text, boxes, sender) in confirmed where boxes.contains(box) && !mayBeLost(text, sender) {
            let items = (ledger.texts[box]?[text] ?? []).map { ledger.stored[box]![$0]! }
            guard items.contains(where: { !$0.isLost && !$0.isReplaced && $0.entry.life == 0 }),
                !ledger.deletedJobs.contains(text)
            else { continue }
            if book.counted, text.hasSuffix(WorkerRun.countedSuffix) {
                // The reply to the call that has finished the job may have been lost.
                checkEffect(text, stored: items.count)
            } else if book.done[text] == nil, !book.failed.contains(text), !book.cancelled.contains(text) {
                world.violation("no worker has done \"\(text)\"")
            }
        }
    }
}
