// Carries out sends that are due later. Any running post office does, within milliseconds of their time.
//
// Each post office looks at a partition when something is due there. The one that finds something goes on to look exactly
// when the next send is due; one that finds that another has taken it looks a quarter of a second later the next time. So
// usually one of them asks Redis, whichever scheduled the sends, and another replaces it when it dies. A post office that
// schedules a send also looks when that one is due. Besides, each looks from time to time, because it may not know what
// others have scheduled.
import CoordinationBase
import Hiredis

/// Schedules this process's sends that are due later, and carries out those of all processes.
final class LaterSender: Sendable {
    /// When to look at a partition, and why.
    struct Watch: Sendable {
        /// The time of the next look.
        var at = Duration.zero
        /// When the next send is due, in milliseconds since 1970, as far as it is known.
        var due: Int?
        /// Whether this process looks exactly when a send is due, because no other one was earlier.
        var isFirst = true
        var isLooking = false
        /// What this process has scheduled during the look, which may not have seen it.
        var meanwhile: (at: Duration, due: Int)?
        /// The number of sends that are being carried out.
        var active = 0
    }

    private struct State: Sendable {
        var watches: [Watch]
        var sleeper: Task<Void, Never>?
        var sleepsUntil = Duration.zero
    }

    /// The maximum number of sends of a partition that are carried out at once.
    private static let maxActive = 128
    /// How much later the others look.
    private static let delayOfOthers = Duration.milliseconds(200)

    private let books: [LaterBook]
    private let keyspace: Namespace
    private let sends: RecordedSends
    private let clock: MonotonicClock
    private let instruments: MailInstruments
    private let state: Locked<State>
    /// The time after which a partition is looked at in any case.
    private let recheckInterval: Duration

    init(
        books: [LaterBook], keyspace: Namespace, sends: RecordedSends, configuration: PostOfficeConfiguration,
        clock: MonotonicClock, instruments: MailInstruments
    ) {
        (self.books, self.keyspace, self.sends) = (books, keyspace, sends)
        (self.clock, self.instruments) = (clock, instruments)
        state = Locked(State(watches: Array(repeating: Watch(), count: books.count)))
        // As often as unfinished sends are looked for.
        let rounds = (books.count - 1) / CrossPartitionSender.maxPartitionsPerRound + 1
        recheckInterval = configuration.takeOverAfter / 2 * rounds
    }

    // MARK: Schedule, cancel and list

    private func home(of id: String) -> Int { keyspace.partition(of: id) }

    func schedule(
        _ request: SendRequest, _ time: SendTime, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> ScheduledSend {
        let id = id ?? randomID()
        let home = home(of: id)
        let due = try await books[home].schedule(request.encoded(id: id), time, id: id, durability)
        instruments.scheduled()
        look(at: home, in: due)
        var recurrence: Recurrence?
        if case .recurring(let rule) = time { recurrence = rule.recurrence }
        return ScheduledSend(id: id, milliseconds: due.time, recurrence)
    }

    func cancel(_ id: String) async throws(QueueListenError) -> Bool { try await books[home(of: id)].cancel(id) }

    func list(_ limit: Int) async throws(QueueListenError) -> [ScheduledSend] {
        var all: [ScheduledSend] = []
        for book in books { all += try await book.list(limit) }
        return Array(all.sorted { ($0.time, $0.id) < ($1.time, $1.id) }.prefix(limit))
    }

    // MARK: Run

    /// Carries out sends that are due, until the task is cancelled.
    func run() async {
        // Soon, because something may be late, but not all post offices of a deployment at once.
        let first = clock.now() + Self.delay()
        state.withLock { state in
            for number in state.watches.indices { state.watches[number].at = first }
        }
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let now = clock.now()
                let due = state.withLock { state in
                    let due = state.watches.indices.filter { number in
                        let watch = state.watches[number]
                        return watch.at <= now && !watch.isLooking && watch.active < Self.maxActive
                    }
                    for number in due { state.watches[number].isLooking = true }
                    return due
                }
                for number in due {
                    group.addTask {
                        let ids = await self.look(at: number)
                        await withDiscardingTaskGroup { carriers in
                            for id in ids.ids {
                                carriers.addTask { await self.carryOut(id, in: number, homeTime: ids.time) }
                            }
                        }
                    }
                }
                if due.isEmpty { await sleep() }
            }
        }
    }

    /// Sleeps until a partition must be looked at.
    private func sleep() async {
        let now = clock.now()
        let sleeper = state.withLock { state -> Task<Void, Never>? in
            let times = state.watches.lazy.filter { !$0.isLooking && $0.active < Self.maxActive }.map(\.at)
            let next = min(times.min() ?? now + recheckInterval, now + recheckInterval)
            guard next > now else { return nil }
            let sleeper = Task { [clock] in _ = try? await clock.sleep(next - now) }
            (state.sleeper, state.sleepsUntil) = (sleeper, next)
            return sleeper
        }
        await withTaskCancellationHandler {
            await sleeper?.value
        } onCancel: {
            sleeper?.cancel()
        }
        state.withLock { state in state.sleeper = nil }
    }

    /// Changes the watch of a partition, and ends the sleep if it must be looked at earlier.
    private func update(_ number: Int, _ change: (inout Watch) -> Void) {
        state.withLock { state -> Task<Void, Never>? in
            change(&state.watches[number])
            let watch = state.watches[number]
            guard !watch.isLooking, watch.active < Self.maxActive, watch.at < state.sleepsUntil else { return nil }
            return state.sleeper
        }?.cancel()
    }

    /// A send of this process is due then.
    private func look(at number: Int, in due: LaterBook.Due) {
        let at = clock.now() + due.wait
        update(number) { $0.add(at: at, due: due.time) }
    }

    /// Takes what is due in a partition.
    private func look(at number: Int) async -> (ids: [String], time: Int) {
        let room = state.withLock { Self.maxActive - $0.watches[number].active }
        do {
            let page = try await books[number].takeDue(limit: room)
            let now = clock.now()
            update(number) { watch in
                watch.isLooking = false
                watch.active += page.ids.count
                watch.record(page, now: now, recheck: recheckInterval, delay: Self.delay())
            }
            return (page.ids, page.now / 1000)
        } catch {
            let now = clock.now()
            update(number) { watch in
                (watch.isLooking, watch.meanwhile) = (false, nil)
                // The call has tried for some time.
                watch.at = now + min(.seconds(1), recheckInterval)
            }
            return ([], 0)
        }
    }

    /// Another time for each, so that not all of them look at once.
    private static func delay() -> Duration { delayOfOthers + .milliseconds(Int.random(in: 0..<100)) }

    private func carryOut(_ id: String, in number: Int, homeTime: Int) async {
        let taken = clock.now()
        // A task of its own: what was taken is finished, also when this post office stops.
        let next = await Task { [sends, instruments, home = books[number].home] () -> Int? in
            do {
                let send = RecordedSend(id: id, kind: .later, home: home)
                let end = try await sends.resume(send, homeTime: homeTime)
                if end.isDelivered { instruments.carriedOut() }
                return end.next
            } catch {
                instruments.cannotCarryOut(QueueListenError(error))
                return nil
            }
        }.value
        update(number) { watch in
            watch.active -= 1
            if let next { watch.add(at: taken + LaterBook.Due(next, now: homeTime * 1000).wait, due: next) }
        }
    }
}

extension LaterSender.Watch {
    /// Decides when to look again.
    ///
    /// - Parameters:
    ///   - recheck: the time after which to look in any case.
    ///   - delay: how much later to look if others are first.
    mutating func record(_ page: LaterBook.Page, now: Duration, recheck: Duration, delay: Duration) {
        if !page.ids.isEmpty {
            isFirst = true
        } else if let due, due * 1000 <= page.now {
            // Another process has taken what was due.
            isFirst = false
        }
        due = page.next?.time
        at = now + recheck
        if let next = page.next { at = min(at, now + next.wait + (isFirst ? .zero : delay)) }
        if let meanwhile { add(at: meanwhile.at, due: meanwhile.due) }
        meanwhile = nil
    }

    /// This process has scheduled a send.
    mutating func add(at time: Duration, due: Int) {
        if isLooking, meanwhile.map({ time < $0.at }) ?? true { meanwhile = (time, due) }
        if time < at { (at, self.due) = (time, due) }
    }
}
