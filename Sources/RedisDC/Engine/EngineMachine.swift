// The client's side of the engine as a pure state machine: no I/O, no clock, no continuations.
//
// It owns the session, the requests under way and what becomes of every claim. Each event returns the actions that it
// leads to; `Engine` carries them out. What Redis says counts: hints on the wake-up channel only make it faster.
import HeapModule
import Hiredis
import Wakeup

struct EngineMachine {
    typealias ID = UInt64

    struct Settings: Sendable {
        var ttl: Duration = .seconds(15) {
            didSet { (margin, heartbeatInterval) = (ttl / 10, ttl / 3) }
        }
        /// How long a caller may be held up, at most, while its cancelled or timed-out wait is settled with Redis.
        var settleTimeout: Duration = .milliseconds(250)
        /// How long an operation that is no wait may take until there is a session.
        var callTimeout: Duration = .seconds(10)
        /// Consumed permits are confirmed with the next request, or after so long.
        var acknowledgeDelay: Duration = .milliseconds(5)
        /// How often waiters ask, when there are no hints.
        var pollInterval: Duration = .seconds(1)
        var failsWaitersOnLoss = false

        // Kept, because dividing durations takes longer than one would think.
        private(set) var margin: Duration = .seconds(15) / 10
        private(set) var heartbeatInterval: Duration = .seconds(15) / 3
    }

    struct Grant: Sendable {
        var claim: ID
        var fence: UInt64
        var life: SessionLife
        /// Only of a lease: hears when it is lost.
        var watch: LeaseWatch?
    }

    enum Outcome: Sendable {
        case granted(Grant)
        case notAvailable
        case done(Int)
    }

    enum Action {
        /// Listen to the wake-ups of this session, and to no other's.
        case listen(SessionLife)
        case join(SessionLife)
        case send(EngineRequest, after: Duration)
        case finish(ID, Result<Outcome, RedisDCError>)
        /// The lease is not the holder's any more.
        case lose(ID, RedisDCError)
        case event(CoordinatorEvent)
    }

    enum Failure: Error {
        /// The same request may be sent again.
        case retry(RedisError)
        case fatal(RedisDCError)
    }

    /// A script of the engine takes so many confirmations at once.
    private static let mostAcknowledged = 100

    // MARK: State

    private enum Phase {
        case idle
        /// The channel comes first, so that no wake-up is missed.
        case listening
        case joining
        case live
        case stopped
    }

    private struct Claim {
        enum State {
            /// Has to be asked for, when there is a session.
            case idle
            case asked(UInt64)
            case queued(UInt64)
            /// No longer wanted: being ended with the server. The caller gets this error then.
            case leaving(UInt64, RedisDCError)
            case held(UInt64, fence: UInt64)
            case releasing(UInt64)
        }
        var state = State.idle
        var thing: Thing
        var count: Int
        var mode: Mode
        var queues: Bool
        /// Who releases the lease; the claim's own caller waits under the claim's id.
        var releaser: ID?
        var deadline: Duration?

        var number: UInt64? {
            switch state {
            case .idle: nil
            case .asked(let number), .queued(let number), .leaving(let number, _), .held(let number, _),
                .releasing(let number):
                number
            }
        }
    }

    private struct Call {
        var operation: Operation
        var number: UInt64?
        var mayHaveRun = false
    }

    private enum Purpose {
        case claim(ID)
        case end(ID)
        case call(ID)
        case heartbeat(sent: Duration)
        case reconcile(known: Set<UInt64>, found: [EngineReply.Line])
        /// Nobody waits for the answer.
        case chore
    }

    private struct Pending {
        var request: EngineRequest
        var purpose: Purpose
        var failures = 0
    }

    private struct Deadline: Comparable {
        var at: Duration
        var id: ID
        static func < (a: Deadline, b: Deadline) -> Bool { a.at < b.at }
    }

    private let settings: Settings
    private let makeSession: () -> SessionLife
    private var phase = Phase.idle
    private var session: SessionLife
    private var epoch: String?
    private var window = RequestWindow()
    private var pending: [UInt64: Pending] = [:]
    private var claims: [ID: Claim] = [:]
    private var claimOf: [UInt64: ID] = [:]
    private var calls: [ID: Call] = [:]
    /// In the order in which they came: what waits for a session.
    private var backlog: [ID] = []
    private var deadlines = Heap<Deadline>()
    private var acknowledgements: [UInt64] = []
    private var acknowledgeAt: Duration?
    private var leftovers: [(name: String, number: UInt64)] = []
    private var heartbeatAt: Duration?
    private var pollAt: Duration?
    private var joinedAt: Duration = .zero
    private var isBeating = false
    private var isReconciling = false
    private var reconcilesAgain = false
    private var hearsHints = false
    /// Grants by others that have been seen, to compare with the server's count.
    private var grants = 0

    init(settings: Settings, makeSession: @escaping () -> SessionLife) {
        self.settings = settings
        self.makeSession = makeSession
        session = makeSession()
    }

    var isLive: Bool { phase == .live }
    var sessionLife: SessionLife { session }

    // MARK: Session

    mutating func start() -> [Action] {
        guard phase == .idle else { return [] }
        phase = .listening
        return [.listen(session)]
    }

    /// The channel is there, or cannot be had for now.
    mutating func listening(_ id: String, hears: Bool, now: Duration) -> [Action] {
        guard id == session.id, phase != .stopped else { return [] }
        let missed = hears && !hearsHints && phase == .live
        hearsHints = hears
        pollAt = hears ? nil : now + settings.pollInterval
        if phase == .listening {
            phase = .joining
            joinedAt = now
            return [.join(session)]
        }
        return missed ? reconcile() : []
    }

    mutating func joined(_ id: String, epoch new: String, now: Duration) -> [Action] {
        guard id == session.id, phase == .joining else { return [] }
        phase = .live
        session.prolong(to: joinedAt + settings.ttl - settings.margin)
        heartbeatAt = joinedAt + settings.heartbeatInterval
        var actions: [Action] = []
        if let epoch, epoch != new { actions.append(.event(.dataLost)) }
        epoch = new
        actions.append(.event(.sessionStarted(id: id)))
        let waiting = backlog
        backlog = []
        for id in waiting { actions += begin(id, now) }
        return actions
    }

    /// Joining failed: for ever (`fatal`, then everything that waits for it fails), or it is to be tried again.
    mutating func joinFailed(_ id: String, _ failure: Failure, now: Duration) -> [Action] {
        guard id == session.id, phase == .joining else { return [] }
        var actions: [Action] = []
        if case .fatal(let error) = failure {
            let waiting = backlog
            backlog = []
            for id in waiting { actions += drop(id, error) }
        }
        joinedAt = now
        return actions + [.join(session)]
    }

    /// An earlier attempt had begun this session and it has ended since: another one is begun.
    mutating func joinedTooLate(_ id: String) -> [Action] {
        guard id == session.id, phase == .joining else { return [] }
        phase = .listening
        session = makeSession()
        return [.listen(session)]
    }

    /// What was held is not held any more; what waits will ask again in a new session.
    private mutating func lose(_ reason: SessionLoss) -> [Action] {
        guard phase == .live || phase == .joining else { return [] }
        var actions: [Action] = [.event(.sessionLost(id: session.id, reason))]
        let error = RedisDCError(.lost, "the session was lost: \(reason)")
        session.finish()
        phase = .listening
        session = makeSession()
        window = RequestWindow()
        (pending, claimOf, acknowledgements) = ([:], [:], [])
        (acknowledgeAt, heartbeatAt, pollAt) = (nil, nil, nil)
        (isBeating, isReconciling, reconcilesAgain, hearsHints, grants) = (false, false, false, false, 0)
        for id in claims.keys.sorted() {
            switch claims[id]!.state {
            case .idle: break
            case .asked, .queued:
                if settings.failsWaitersOnLoss {
                    actions += drop(id, error)
                } else {
                    claims[id]!.state = .idle
                    backlog.append(id)
                }
            case .leaving(_, let why): actions += drop(id, why)
            case .held:
                claims[id] = nil
                actions.append(.lose(id, error))
            case .releasing:
                if let releaser = claims[id]!.releaser { actions.append(.finish(releaser, .failure(error))) }
                claims[id] = nil
            }
        }
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) where call.number != nil {
            calls[id] = nil
            var lost = RedisDCError(.connectionLost, "the session was lost while the operation was under way")
            lost.mayHaveRun = true
            actions.append(.finish(id, .failure(lost)))
        }
        return actions + [.listen(session)]
    }

    /// Takes no new work. Waiters are let go and holders told. What is to be ended with the server is left to `farewell`.
    mutating func stop() -> [Action] {
        guard phase != .stopped else { return [] }
        leftovers =
            phase == .live ? claims.values.compactMap { claim in claim.number.map { (claim.thing.name, $0) } } : []
        let error = RedisDCError(.stopped, "the coordinator is stopping")
        var actions: [Action] = []
        for id in claims.keys.sorted() {
            switch claims[id]!.state {
            case .held: actions.append(.lose(id, error))
            case .releasing:
                if let releaser = claims[id]!.releaser { actions.append(.finish(releaser, .success(.done(1)))) }
            default: actions.append(.finish(id, .failure(error)))
            }
        }
        for id in calls.keys.sorted() {
            var stopped = error
            stopped.mayHaveRun = calls[id]!.number != nil
            actions.append(.finish(id, .failure(stopped)))
        }
        phase = .stopped
        session.finish()
        (claims, calls, pending, claimOf, backlog) = ([:], [:], [:], [:], [])
        return actions
    }

    /// Ends what was held and waited for; then the session can be ended.
    mutating func farewell() -> [EngineRequest] {
        defer { leftovers = [] }
        var all = leftovers.map {
            EngineRequest(
                session: session.id, number: window.next(), operation: .release(name: $0.name, claim: $0.number))
        }
        while !acknowledgements.isEmpty {
            let some = Array(acknowledgements.prefix(Self.mostAcknowledged))
            acknowledgements.removeFirst(some.count)
            all.append(
                EngineRequest(
                    session: session.id, number: window.next(), acknowledged: some, operation: .give(name: "")))
        }
        return all
    }

    // MARK: What callers want

    mutating func acquire(
        _ id: ID, _ thing: Thing, count: Int, mode: Mode, queues: Bool, deadline: Duration?, now: Duration
    ) -> [Action] {
        guard phase != .stopped else { return [.finish(id, .failure(Self.stopped))] }
        claims[id] = Claim(thing: thing, count: count, mode: mode, queues: queues, deadline: deadline)
        let latest = deadline ?? (queues || phase == .live ? nil : now + settings.callTimeout)
        if let latest { remind(id, at: latest) }
        return expire(now) + begin(id, now)
    }

    mutating func call(_ id: ID, _ operation: Operation, now: Duration) -> [Action] {
        guard phase != .stopped else { return [.finish(id, .failure(Self.stopped))] }
        calls[id] = Call(operation: operation)
        if phase != .live { remind(id, at: now + settings.callTimeout) }
        return expire(now) + begin(id, now)
    }

    /// The caller of a wait has given up. Ends with `finish` as soon as it is certain that nothing is held.
    mutating func abandon(_ id: ID, _ error: RedisDCError, now: Duration) -> [Action] {
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .idle: return drop(id, error)
        case .asked(let number), .queued(let number):
            claims[id]!.state = .leaving(number, error)
            if case .claim? = pending[number]?.purpose { pending[number]!.purpose = .chore }
            remind(id, at: now + settings.settleTimeout)
            return [send(.release(name: claim.thing.name, claim: number), .end(id))]
        case .leaving, .held, .releasing: return []
        }
    }

    /// Gives a lease back. `releaser` gets the outcome; without one nobody waits for it.
    mutating func release(_ id: ID, releaser: ID?, now: Duration) -> [Action] {
        let late = expire(now)
        guard let claim = claims[id], case .held(let number, _) = claim.state else {
            let error = RedisDCError(.lost, "it was not held any more")
            return late + (releaser.map { [.finish($0, .failure(error))] } ?? [])
        }
        claims[id]!.state = .releasing(number)
        claims[id]!.releaser = releaser
        return late + [send(.release(name: claim.thing.name, claim: number), .end(id))]
    }

    private static var stopped: RedisDCError { RedisDCError(.stopped, "the coordinator has stopped") }

    /// Asks for it now, or when there is a session.
    private mutating func begin(_ id: ID, _ now: Duration) -> [Action] {
        guard phase == .live else {
            if claims[id] != nil || calls[id] != nil { backlog.append(id) }
            return []
        }
        if let claim = claims[id] {
            let operation = Operation.acquire(
                claim.thing, count: claim.count, mode: claim.mode, queues: claim.queues)
            let action = send(operation, .claim(id))
            if case .send(let request, _) = action {
                claims[id]!.state = .asked(request.number)
                claimOf[request.number] = id
            }
            return [action]
        }
        if let call = calls[id] {
            let action = send(call.operation, .call(id))
            if case .send(let request, _) = action { calls[id]!.number = request.number }
            return [action]
        }
        return []
    }

    private mutating func send(_ operation: Operation, _ purpose: Purpose) -> Action {
        let isChore = if case .heartbeat = operation { true } else { false }
        let request = EngineRequest(
            session: session.id, number: window.next(), settled: window.news(always: isChore),
            acknowledged: Array(acknowledgements.prefix(Self.mostAcknowledged)), operation: operation)
        acknowledgements.removeFirst(request.acknowledged.count)
        // What does not fit goes at the next look at the clock.
        acknowledgeAt = acknowledgements.isEmpty ? nil : .zero
        pending[request.number] = Pending(request: request, purpose: purpose)
        return .send(request, after: .zero)
    }

    // MARK: What Redis says

    mutating func reply(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, now: Duration
    ) -> [Action] {
        var actions = expire(now)
        guard request.session == session.id, let entry = pending[request.number] else { return actions }
        switch result {
        case .failure(.retry(let error)):
            return actions + retry(request.number, error)
        case .failure(.fatal(let error)):
            settle(request.number)
            // What it carried has not arrived.
            acknowledgements = request.acknowledged + acknowledgements
            if !acknowledgements.isEmpty { acknowledgeAt = acknowledgeAt ?? now + settings.heartbeatInterval }
            return actions + failed(entry, error, now)
        case .success(.lost):
            return actions + lose(now < session.end ? .dataLost : .expired)
        case .success(let reply):
            settle(request.number)
            actions += answered(entry, reply, now)
            return actions
        }
    }

    private mutating func settle(_ number: UInt64) {
        pending[number] = nil
        window.settle(number)
    }

    private mutating func retry(_ number: UInt64, _ error: RedisError) -> [Action] {
        pending[number]!.failures += 1
        if case .call(let id) = pending[number]!.purpose, error.commandMayHaveRun { calls[id]?.mayHaveRun = true }
        let pause = Duration.milliseconds(10 << min(pending[number]!.failures - 1, 6))
        return [.send(pending[number]!.request, after: pause)]
    }

    private mutating func answered(_ entry: Pending, _ reply: EngineReply, _ now: Duration) -> [Action] {
        switch entry.purpose {
        case .claim(let id): return answeredClaim(id, entry.request.number, reply, now)
        case .end(let id): return ended(id) + more(entry.request.operation, reply)
        case .call(let id):
            calls[id] = nil
            return [.finish(id, result(of: entry.request.operation, reply))] + more(entry.request.operation, reply)
        case .heartbeat(let sent): return beaten(sent, reply, now)
        case .reconcile(let known, let found): return reconciled(known, found, reply, now)
        case .chore: return more(entry.request.operation, reply)
        }
    }

    private mutating func failed(_ entry: Pending, _ error: RedisDCError, _ now: Duration) -> [Action] {
        switch entry.purpose {
        case .claim(let id): return drop(id, error)
        case .end(let id):
            // The session's end will free it.
            guard let claim = claims[id] else { return [] }
            if case .leaving(_, let why) = claim.state { return drop(id, why) }
            forget(id)
            return claim.releaser.map { [.finish($0, .failure(error))] } ?? []
        case .call(let id):
            var error = error
            if calls[id]?.mayHaveRun == true { error.mayHaveRun = true }
            calls[id] = nil
            return [.finish(id, .failure(error))]
        case .heartbeat:
            isBeating = false
            heartbeatAt = now + .milliseconds(200)
            return []
        case .reconcile:
            isReconciling = false
            return []
        case .chore: return []
        }
    }

    private mutating func answeredClaim(
        _ id: ID, _ number: UInt64, _ reply: EngineReply, _ now: Duration
    ) -> [Action] {
        guard let claim = claims[id], case .asked(number) = claim.state else { return [] }
        switch reply {
        case .granted(let fence): return granted(id, number, fence, now)
        case .queued:
            claims[id]!.state = .queued(number)
            return []
        case .none:
            forget(id)
            return [.finish(id, .success(.notAvailable))]
        default:
            forget(id)
            return [.finish(id, result(of: .acquire(claim.thing, count: 0, mode: .lease, queues: true), reply))]
        }
    }

    private mutating func granted(_ id: ID, _ number: UInt64, _ fence: UInt64, _ now: Duration) -> [Action] {
        let isLease = claims[id]!.mode == .lease
        let grant = Grant(claim: id, fence: fence, life: session, watch: isLease ? LeaseWatch() : nil)
        if !isLease {
            forget(id)
            acknowledgements.append(number)
            acknowledgeAt = acknowledgeAt ?? now + settings.acknowledgeDelay
        } else {
            claims[id]!.state = .held(number, fence: fence)
        }
        return [.finish(id, .success(.granted(grant)))]
    }

    private mutating func ended(_ id: ID) -> [Action] {
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .leaving(_, let error): return drop(id, error)
        case .releasing:
            forget(id)
            // A release whose answer was lost finds nothing the second time: it was held, or the session were lost.
            return claim.releaser.map { [.finish($0, .success(.done(1)))] } ?? []
        default: return []
        }
    }

    private mutating func more(_ operation: Operation, _ reply: EngineReply) -> [Action] {
        guard case .done(_, let more) = reply, more else { return [] }
        switch operation {
        case .release, .give, .destroy, .signal, .resize: return [send(.give(name: operation.name), .chore)]
        case .acquire, .create, .heartbeat, .reconcile: return []
        }
    }

    private func result(of operation: Operation, _ reply: EngineReply) -> Result<Outcome, RedisDCError> {
        let name = operation.name
        switch reply {
        case .done(let count, _): return .success(.done(count))
        case .conflict(let kind, let permits, let fairness):
            let found = kind == "m" ? "a mutex" : "a semaphore with \(permits) permits"
            let how = fairness == "b" ? ", barging" : ""
            return .failure(
                RedisDCError(
                    .conflict,
                    "\"\(name)\" is \(found)\(how), which is not what this call wants\(operation.wish)"))
        case .missing:
            return .failure(
                RedisDCError(.notFound, "there is no semaphore \"\(name)\"; create it with a number of permits"))
        case .gone: return .failure(RedisDCError(.destroyed, "\"\(name)\" has been destroyed"))
        default: return .failure(RedisDCError(.serverError, "unexpected answer \(reply) for \"\(name)\""))
        }
    }

    private mutating func drop(_ id: ID, _ error: RedisDCError) -> [Action] {
        guard claims[id] != nil || calls[id] != nil else { return [] }
        forget(id)
        calls[id] = nil
        return [.finish(id, .failure(error))]
    }

    private mutating func forget(_ id: ID) {
        if let number = claims.removeValue(forKey: id)?.number { claimOf[number] = nil }
    }

    // MARK: Hints

    /// Pairs of a claim's number and its fence, or a word.
    mutating func hint(_ id: String, _ text: String, now: Duration) -> [Action] {
        var actions = expire(now)
        guard id == session.id, phase == .live else { return actions }
        let words = text.split(separator: " ")
        for index in stride(from: 0, to: words.count - 1, by: 2) {
            guard let number = UInt64(words[index]) else { continue }
            let word = words[index + 1]
            if let fence = UInt64(word) {
                grants += 1
                actions += granted(number, fence, now)
            } else if let claimID = claimOf[number], let claim = claims[claimID] {
                actions += told(claimID, claim, word)
            }
        }
        return actions
    }

    private mutating func granted(_ number: UInt64, _ fence: UInt64, _ now: Duration) -> [Action] {
        guard let id = claimOf[number], let claim = claims[id] else { return [] }
        switch claim.state {
        case .asked, .queued: return granted(id, number, fence, now)
        case .idle, .leaving, .held, .releasing: return []
        }
    }

    private mutating func told(_ id: ID, _ claim: Claim, _ word: Substring) -> [Action] {
        switch (word, claim.state) {
        case ("gone", .asked), ("gone", .queued):
            return drop(id, RedisDCError(.destroyed, "\"\(claim.thing.name)\" has been destroyed"))
        case ("try", .asked), ("try", .queued): return [send(.give(name: claim.thing.name), .chore)]
        case ("lost", .held):
            forget(id)
            return [.lose(id, RedisDCError(.lost, "\"\(claim.thing.name)\" was taken away by an operator"))]
        default: return []
        }
    }

    // MARK: Reconcile

    /// Hints may have been missed: Redis is asked what there is.
    mutating func gap(_ id: String, now: Duration) -> [Action] {
        guard id == session.id, phase == .live else { return [] }
        return expire(now) + reconcile()
    }

    private mutating func reconcile() -> [Action] {
        guard phase == .live else { return [] }
        if isReconciling {
            reconcilesAgain = true
            return []
        }
        isReconciling = true
        let known = claims.values.compactMap { claim -> UInt64? in
            switch claim.state {
            case .queued(let number), .held(let number, _): number
            case .idle, .asked, .leaving, .releasing: nil
            }
        }
        return [send(.reconcile(after: ""), .reconcile(known: Set(known), found: []))]
    }

    private mutating func reconciled(
        _ known: Set<UInt64>, _ before: [EngineReply.Line], _ reply: EngineReply, _ now: Duration
    ) -> [Action] {
        guard case .page(let next, let lines) = reply else {
            isReconciling = false
            return []
        }
        let found = before + lines
        guard next.isEmpty else {
            return [send(.reconcile(after: next), .reconcile(known: known, found: found))]
        }
        isReconciling = false
        var actions: [Action] = []
        for line in found {
            if claimOf[line.number] == nil {
                // Granted to a request that nobody waits for any more. A consumed one may be waiting for its confirmation.
                if pending[line.number] == nil, line.state != "g" {
                    actions.append(send(.release(name: line.name, claim: line.number), .chore))
                }
            } else if line.state == "h" || line.state == "g" {
                actions += granted(line.number, line.fence, now)
            }
        }
        let missing = known.subtracting(found.map(\.number))
        for number in missing.sorted() {
            guard let id = claimOf[number], let claim = claims[id] else { continue }
            switch claim.state {
            case .held:
                forget(id)
                let error = RedisDCError(.lost, "Redis has lost that \"\(claim.thing.name)\" was held")
                actions.append(.lose(id, error))
            case .queued:
                // Redis has lost the place in the queue.
                claimOf[number] = nil
                actions += begin(id, now)
            case .idle, .asked, .leaving, .releasing: break
            }
        }
        if !missing.isEmpty { actions.append(.event(.dataLost)) }
        if reconcilesAgain {
            reconcilesAgain = false
            actions += reconcile()
        }
        return actions
    }

    // MARK: Time

    private mutating func remind(_ id: ID, at deadline: Duration) {
        // Those of waits that have ended stay until their time; when they are the most, they are cleared away.
        if deadlines.count > 64, deadlines.count > 4 * (claims.count + calls.count) {
            deadlines = Heap(deadlines.unordered.filter { claims[$0.id] != nil || calls[$0.id] != nil })
        }
        deadlines.insert(Deadline(at: deadline, id: id))
    }

    /// When to call `tick` next.
    var nextTick: Duration? {
        var next = deadlines.min?.at
        func consider(_ at: Duration?) { if let at { next = min(next ?? at, at) } }
        if phase == .live {
            consider(session.end)
            if !isBeating { consider(heartbeatAt) }
            consider(acknowledgeAt)
            consider(pollAt)
        }
        return next
    }

    mutating func tick(now: Duration) -> [Action] {
        var actions = expire(now)
        while let first = deadlines.min, first.at <= now {
            deadlines.removeMin()
            actions += due(first.id, now)
        }
        guard phase == .live else { return actions }
        let isDue = [heartbeatAt, acknowledgeAt].contains { $0.map { $0 <= now } ?? false }
        if isDue, !isBeating {
            isBeating = true
            heartbeatAt = now + settings.heartbeatInterval
            actions.append(send(.heartbeat, .heartbeat(sent: now)))
        } else if let acknowledgeAt, acknowledgeAt <= now {
            // A heartbeat is under way already.
            self.acknowledgeAt = now + settings.acknowledgeDelay
        }
        if let pollAt, pollAt <= now {
            self.pollAt = now + settings.pollInterval
            if claims.values.contains(where: { if case .queued = $0.state { true } else { false } }) {
                actions += reconcile()
            }
        }
        return actions
    }

    /// The session is over by our own clock: nobody must be told that he holds something.
    private mutating func expire(_ now: Duration) -> [Action] {
        phase == .live && now >= session.end ? lose(.expired) : []
    }

    private mutating func due(_ id: ID, _ now: Duration) -> [Action] {
        if let call = calls[id] {
            guard call.number == nil else { return [] }
            return drop(id, RedisDCError(.notConnected, "no session with Redis within \(settings.callTimeout)"))
        }
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .idle, .asked, .queued:
            if claim.deadline == nil, !claim.queues, claim.number == nil {
                return drop(id, RedisDCError(.notConnected, "no session with Redis within \(settings.callTimeout)"))
            }
            guard claim.deadline != nil else { return [] }
            return abandon(id, RedisDCError(.timedOut, "\"\(claim.thing.name)\" was not to be had in time"), now: now)
        case .leaving(_, let error):
            // The caller has waited long enough; its claim goes on being ended.
            let number = claim.number!
            claims[id] = nil
            claimOf[number] = nil
            return [.finish(id, .failure(error))]
        case .held, .releasing: return []
        }
    }

    private mutating func beaten(_ sent: Duration, _ reply: EngineReply, _ now: Duration) -> [Action] {
        isBeating = false
        guard case .heartbeat(let grants, let claims, let duties) = reply else { return [] }
        session.prolong(to: sent + settings.ttl - settings.margin)
        // Only when nothing is under way do the counts have to agree.
        let isQuiet = pending.isEmpty && acknowledgements.isEmpty
        var actions: [Action] = []
        if grants != self.grants || (isQuiet && claims != self.claims.count) {
            self.grants = grants
            actions += reconcile()
        }
        for name in duties.names { actions.append(send(.give(name: name), .chore)) }
        if let dead = duties.dead {
            for claim in dead.claims {
                let release = Operation.release(name: claim.name, claim: claim.number, owner: dead.session)
                actions.append(send(release, .chore))
            }
            // There may be more of them, and then the session's own record goes.
            heartbeatAt = now + .milliseconds(10)
        }
        return actions
    }
}

extension Operation {
    fileprivate var wish: String {
        switch self {
        case .acquire(let thing, _, _, _), .signal(let thing, _), .create(let thing):
            if thing.kind == .mutex { return " (a mutex)" }
            let permits = thing.permits.map { "\($0) permits" } ?? "any"
            return " (a semaphore, \(permits), \(thing.fairness))"
        case .resize: return " (a semaphore)"
        default: return ""
        }
    }
}
