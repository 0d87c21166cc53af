// One process that works on a mailbox: it takes jobs, runs them, and reports what has become of them.
//
// It sends one request `work` after another, each of which reports jobs and takes others. A request whose reply is lost is
// repeated under its number. Beside that it postpones its end (`beat`). When it cannot do so in time, or is found dead, it
// cancels its jobs before others can have them, and begins again as another worker.
import CoordinationBase
import Hiredis

/// A worker of one mailbox, from the beginning of `Mailbox.work` to its end.
final class Worker: Sendable {
    typealias Handler = @Sendable (Job) async throws -> Void

    private let mailbox: Mailbox
    private let configuration: WorkConfiguration
    private let handler: Handler
    private let clock: MonotonicClock
    private let redis: any Redis
    private let state = Locked(WorkerState())
    /// The process in the mailbox's list of those to notify: 16 characters.
    private let listener = UInt64.random(in: .min ... .max).hexadecimal

    init(_ mailbox: Mailbox, _ configuration: WorkConfiguration, _ handler: @escaping Handler) {
        (self.mailbox, self.configuration, self.handler) = (mailbox, configuration, handler)
        (clock, redis) = (mailbox.office.clock, mailbox.office.redis)
    }

    private var instruments: MailInstruments { mailbox.office.instruments }
    private var keys: MailboxKeys { mailbox.partition.keys }
    /// A worker counts as dead for itself so much earlier than for others.
    private var margin: Duration { configuration.ttl / 10 }

    // MARK: Life

    /// Works until ``stop()``. No handler runs any more when it returns.
    func run() async throws(QueueListenError) {
        let tasks = [Task { await keepAlive() }, Task { await watchLife() }, Task { await followWakeUps() }]
        defer { for task in tasks { task.cancel() } }
        do {
            while true {
                switch nextStep() {
                case .begin: try await begin()
                case .work: try await work()
                case .sleep(let end): await sleep(until: end)
                case .leave(let isAlive):
                    await endHandlers()
                    if isAlive { await leave(state.withLock { $0.process }) }
                    return
                }
                if let failure = state.withLock({ $0.failure }) { throw failure }
            }
        } catch {
            loseAll()
            await endHandlers()
            throw QueueListenError(error)
        }
    }

    /// The time for which no other worker runs the jobs that this one has taken in a life.
    func remaining(of process: String) -> Duration {
        state.withLock { $0.process == process ? max(.zero, $0.lifeEnd - clock.now()) : .zero }
    }

    /// Takes no more jobs, and ends when those that run have ended.
    func stop() {
        change { $0.graceEnd = $0.graceEnd ?? clock.now() + configuration.grace }
    }

    private func endHandlers() async {
        for handler in state.withLock({ Array($0.handlers.values) }) { await handler.value }
    }

    private func nextStep() -> WorkerState.Step {
        let (step, cancelled) = state.withLock { state in
            state.nextStep(now: clock.now(), concurrency: configuration.concurrency)
        }
        for task in cancelled { task.cancel() }
        if case .begin = step { instruments.lostJobs(cancelled.count) }
        return step
    }

    /// Changes the state, and looks what to do next.
    private func change(_ change: (inout WorkerState) -> Void) {
        state.withLock { state -> Task<Void, Never>? in
            change(&state)
            return state.sleeper
        }?.cancel()
    }

    /// Looks what to do next, because the state has changed.
    private func wakeUp() { change { _ in } }

    private func sleep(until end: Duration) async {
        let sleeper = Task { [clock] in _ = try? await clock.sleep(end - clock.now()) }
        state.withLock { $0.sleeper = sleeper }
        // Something may have changed before the sleeper was there.
        if case .sleep(let latest) = nextStep(), latest >= end { await sleeper.value }
        sleeper.cancel()
        state.withLock { $0.sleeper = nil }
    }

    /// Begins as another worker.
    private func begin() async throws {
        let process = UInt64.random(in: .min ... .max).hexadecimal
        var hasBegun = false
        while state.withLock({ $0.graceEnd }) == nil {
            let sent = clock.now()
            do {
                hasBegun = true
                let reply = try await beat(process, .begins)
                guard BeatReply(reply) != nil else {
                    throw QueueListenError(refusal: reply, partitions: mailbox.partition.total)
                }
                return state.withLock { $0.begin(process, until: sent + configuration.ttl - margin) }
            } catch { try await pause(after: error) }
        }
        // A reply was lost, and it stops.
        if hasBegun { await leave(process) }
    }

    private func leave(_ process: String) async {
        // A worker that cannot leave is found dead.
        _ = try? await beat(process, .leaves)
    }

    /// Postpones the end of this worker, again and again.
    private func keepAlive() async {
        while true {
            do { try await clock.sleep(configuration.ttl / 3) } catch { return }
            while !Task.isCancelled {
                do {
                    if try await !continueLife() { break }
                } catch {
                    do { try await pause(after: error) } catch {
                        change { $0.failure = QueueListenError(error) }
                        return
                    }
                }
            }
        }
    }

    /// Postpones the end of this worker.
    ///
    /// - Returns: whether to do that again at once, because more workers are dead.
    private func continueLife() async throws -> Bool {
        let sent = clock.now()
        let (process, number, fences, ended, lifeEnd) = state.withLock { state in
            (state.process, state.number, state.running.mapValues(\.fence), state.ends.map(\.tag), state.lifeEnd)
        }
        guard sent < lifeEnd else { return false }
        let reply = try await beat(process, .continues, number: number, known: fences.keys + ended)
        if reply.array?.first?.string == "gone" {
            if state.withLock({ $0.process == process }) { loseAll() }
            return false
        }
        guard let beat = BeatReply(reply) else {
            throw QueueListenError(refusal: reply, partitions: mailbox.partition.total)
        }
        let (lost, cancelled) = state.withLock { state -> ([Task<Void, Never>], [Task<Void, Never>]) in
            guard state.process == process, clock.now() < state.lifeEnd else { return ([], []) }
            state.lifeEnd = max(state.lifeEnd, sent + configuration.ttl - margin)
            state.nextByBeat = beat.next.map { clock.now() + .milliseconds(max(0, $0 - beat.now)) }
            return (state.lose(beat.lost, asOf: fences), state.cancel(beat.cancelled))
        }
        for task in lost + cancelled { task.cancel() }
        instruments.lostJobs(lost.count)
        wakeUp()
        return beat.hasMore
    }

    /// Cancels the jobs when the life of this worker is over, whatever else it waits for.
    private func watchLife() async {
        while true {
            let end = state.withLock { $0.lifeEnd }
            // A life that begins meanwhile is longer than that.
            let pause = end == .zero ? configuration.ttl / 2 : end - clock.now()
            do { try await clock.sleep(max(pause, .milliseconds(1))) } catch { return }
            if state.withLock({ $0.lifeEnd != .zero && clock.now() >= $0.lifeEnd }) { loseAll() }
        }
    }

    /// Ends the life of this worker, and cancels its jobs.
    private func loseAll() {
        let tasks = state.withLock { $0.loseAll() }
        for task in tasks { task.cancel() }
        instruments.lostJobs(tasks.count)
        wakeUp()
    }

    /// - Throws: the error, if a repetition would not help.
    private func pause(after error: any Error) async throws {
        let error = QueueListenError(error)
        guard error.isTransient else { throw error }
        try await clock.sleep(.milliseconds(100))
    }

    /// Notes that there are new messages when the server says so.
    private func followWakeUps() async {
        guard mailbox.office.configuration.usesWakeUps else { return }
        let channels = [keys.wakeUpChannel(of: listener), keys.commonChannel]
        while !Task.isCancelled {
            do {
                let subscription = try await redis.subscribe(to: channels.map { .channel($0) })
                change { ($0.isNotified, $0.mayHaveMore) = (true, true) }
                for try await event in subscription {
                    if case .message(let message) = event {
                        guard MailWakeUp.decode(message.payload).contains(where: { $0.mailbox == mailbox.name }) else {
                            continue
                        }
                    }
                    change { $0.mayHaveMore = true }
                }
            } catch {
                // Without wake-ups, it asks from time to time.
            }
            change { ($0.isNotified, $0.mayHaveMore) = (false, true) }
            do { try await clock.sleep(mailbox.office.configuration.pollInterval) } catch { return }
        }
    }

    // MARK: Work

    /// Reports what has become of jobs, and takes others.
    private func work() async throws {
        let (process, request, ends) = state.withLock { state in
            (state.mayHaveMore, state.nextByBeat) = (false, nil)
            let ends = Array(state.ends.prefix(Self.maxEnds))
            let request = WorkRequest(
                process: state.process, number: state.number + 1, fence: state.fence,
                room: state.room(of: configuration.concurrency), maxFailed: configuration.maxFailed)
            return (state.process, request, ends)
        }
        let listen = mailbox.partition.listenArgument(listener, registration: Self.registration)
        let arguments = [.bytes(listen), request.argument(ends.count)] + ends.map(\.argument)
        while true {
            do {
                let reply = try await redis.script(
                    Scripts.work, keys: keys.scriptKeys(mailbox.name) + keys.jobKeys(mailbox.name),
                    arguments: arguments, timeout: timeout)
                if reply.array?.first?.string == "gone" { return loseAll() }
                guard let reply = WorkReply(reply) else {
                    throw QueueListenError(refusal: reply, partitions: mailbox.partition.total)
                }
                return answered(reply, process, request.number)
            } catch {
                // Its jobs are those of others when its life is over, also those that it does not know of.
                if clock.now() >= state.withLock({ $0.lifeEnd }) { return }
                for task in state.withLock({ $0.overdue(at: clock.now()) }) { task.cancel() }
                try await pause(after: error)
            }
        }
    }

    private func answered(_ reply: WorkReply, _ process: String, _ number: Int) {
        state.withLock { state in
            let now = clock.now()
            guard state.process == process, state.number == number - 1, now < state.lifeEnd else { return }
            state.number = number
            // Those of the request that the server has run, which may be an earlier attempt.
            state.ends.removeFirst(min(reply.results.count, state.ends.count))
            // There may have been a wake-up while the reply was on its way.
            if reply.hasMore { state.mayHaveMore = true }
            state.next = reply.next.map { now + .milliseconds(max(0, $0 - reply.now)) }
            let configuration = mailbox.office.configuration
            state.askAt =
                now
                + (state.isNotified
                    ? min(Self.registration / 2, configuration.recheckInterval) : configuration.pollInterval)
            if let ttl = configuration.limits.deviceTTL { state.askAt = min(state.askAt, now + ttl / 4) }
            for job in reply.jobs {
                state.add(job) { number, earlier in
                    Task {
                        await earlier?.value
                        let end = await self.run(job, of: process)
                        await self.answerFailure(end, job)
                        self.ended(end, attempt: job.attempt, number)
                    }
                }
            }
        }
    }

    /// Runs a job.
    ///
    /// - Returns: what to report.
    private func run(_ taken: TakenJob, of process: String) async -> JobEnd {
        let message = ReceivedMessage(taken.stored, epoch: 0)
        let job = Job(
            message: message, attempt: taken.attempt, fence: UInt64(taken.fence),
            orderKey: Envelope.decode(taken.stored.envelope).orderKey, mailbox: mailbox, worker: self,
            process: process, tag: taken.tag)
        var end = JobEnd(tag: taken.tag, fence: taken.fence, outcome: .done)
        if taken.attempt > configuration.attempts {
            (end.outcome, end.reason) = (.giveUp, "its workers have ended, or lost it, in each attempt")
        } else if let error = await instruments.working({ try await handler(job) }) {
            end.reason = "\(error)"
            if error is JobReturned || Task.isCancelled && state.withLock({ $0.graceEnd != nil }) {
                end.outcome = .return
            } else if error is JobRejection || taken.attempt >= configuration.attempts {
                end.outcome = .giveUp
            } else {
                (end.outcome, end.pause) = (.retry, configuration.pause(after: taken.attempt))
            }
        }
        return end
    }

    /// Notes that Redis has confirmed the effect of a job.
    func confirmEffect(of tag: UInt64, fence: UInt64) {
        state.withLock { $0.confirmEffect(of: tag, fence: Int(fence)) }
    }

    /// Tells who has asked what becomes of a job that is not answered any more.
    private func answerFailure(_ end: JobEnd, _ job: TakenJob) async {
        let question = ReceivedMessage(job.stored, epoch: 0)
        guard question.isQuestion else { return }
        let run = state.withLock { $0.running[end.tag] }
        guard let run, run.fence == end.fence, !run.hadEffect, run.isCancelled || end.outcome == .giveUp else { return }
        // A task of its own, because that of a cancelled job is cancelled too.
        await Task { try? await mailbox.office.fail(question, run.isCancelled ? "it was cancelled" : end.reason) }.value
    }

    private func ended(_ end: JobEnd, attempt: Int, _ number: Int) {
        let run = state.withLock { state in
            state.handlerEnded(number)
            return state.note(end)
        }
        // One that was cancelled has neither succeeded nor failed.
        if let run, !run.isCancelled {
            instruments.jobEnded(run.hadEffect ? .hadEffect : end.outcome, attempt: attempt)
        }
        if let run {
            configuration.jobEnded?(run.isCancelled || run.hadEffect || end.outcome == .done || end.outcome == .giveUp)
        }
        wakeUp()
    }

    // MARK: Requests

    private var timeout: Duration {
        max(.milliseconds(1), min(mailbox.office.configuration.callTimeout, configuration.ttl / 3))
    }

    private enum Phase: String {
        case begins = "0"
        case continues = "1"
        case leaves = "2"
    }

    private func beat(
        _ process: String, _ phase: Phase, number: Int = 0, known: [UInt64] = []
    ) async throws -> RESPValue {
        var tags = PackedBytes()
        for tag in known { tags.uint64(tag) }
        return try await redis.script(
            Scripts.beat, keys: keys.jobKeys(mailbox.name),
            arguments: [
                .string(process), .integer(configuration.ttl.wholeMilliseconds), .string(phase.rawValue),
                .integer(number), .bytes(tags.bytes),
            ], timeout: timeout)
    }

    /// How long a worker without jobs is notified of messages.
    private static let registration = Duration.seconds(60)
    /// The maximum number of ends that one request reports.
    private static let maxEnds = 256
}
