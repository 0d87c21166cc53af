// How a session begins, ends, is followed by another, and is closed at shutdown.
import CoordinationBase
import DequeModule
import Hiredis

extension EngineStateMachine {
    /// The state of a live session.
    struct Session {
        /// What a request is for.
        enum Purpose {
            case claim(ID)
            /// Ends a claim.
            case end(ID)
            case call(ID)
            case heartbeat(sent: Duration)
            case reconcile(known: Set<UInt64>, found: [EngineReply.Line])
            /// Nobody waits for the reply.
            case background
        }

        struct Pending {
            var request: EngineRequest
            var purpose: Purpose
            var failures = 0
        }

        enum Heartbeat {
            case due(at: Duration)
            case inFlight(next: Duration)
        }

        enum Reconciliation {
            case none
            /// `again`: there is a reason to compare once more afterwards.
            case running(again: Bool)
        }

        var window = RequestWindow()
        var pending: [UInt64: Pending] = [:]
        /// The claim of each request number.
        var claimIDs: [UInt64: ID] = [:]
        var confirmations = Confirmations()
        var heartbeat: Heartbeat
        var reconciliation = Reconciliation.none
        /// Grants by other sessions that this one has seen, to compare with the server's count.
        var grants = 0
        var channel: Channel
    }

    /// The session's wake-up channel.
    enum Channel {
        case subscribed
        /// Without hints, waiters ask for grants at this time.
        case unsubscribed(pollAt: Duration)

        var isSubscribed: Bool { if case .subscribed = self { true } else { false } }
    }

    /// What a stopped session still has to end with the server.
    struct Leftovers {
        var claims: [(name: String, number: UInt64)]
        var window: RequestWindow
        var confirmations: Confirmations
    }

    // MARK: Begin

    enum StartAction {
        case none
        case subscribe(SessionLife)
    }

    mutating func start() -> StartAction {
        guard case .idle = phase else { return .none }
        phase = .subscribing
        return .subscribe(life)
    }

    enum SubscriptionAction {
        case none
        case join(SessionLife)
        case send(EngineRequest)
    }

    /// The subscription to the session's channel stands, or has failed for now.
    mutating func subscriptionChanged(_ id: String, isSubscribed: Bool, now: Duration) -> SubscriptionAction {
        guard id == life.id else { return .none }
        let channel = isSubscribed ? Channel.subscribed : .unsubscribed(pollAt: now + settings.pollInterval)
        switch phase {
        case .idle, .stopped: return .none
        case .subscribing:
            phase = .joining(since: now, channel)
            return .join(life)
        case .joining(let since, _):
            phase = .joining(since: since, channel)
            return .none
        case .live:
            let wasSubscribed = live.channel.isSubscribed
            live.channel = channel
            guard isSubscribed, !wasSubscribed else { return .none }
            return reconcile().map { .send($0) } ?? .none
        }
    }

    enum JoinAction {
        case event(CoordinatorEvent)
        case send(EngineRequest)
    }

    /// Redis has accepted the session.
    mutating func joined(_ id: String, epoch new: String, now: Duration) -> [JoinAction] {
        guard id == life.id, case .joining(let since, let channel) = phase else { return [] }
        life.extend(to: since + settings.ttl - settings.margin)
        phase = .live(Session(heartbeat: .due(at: since + settings.heartbeatInterval), channel: channel))
        var actions: [JoinAction] = []
        if let epoch, epoch != new { actions.append(.event(.dataLost)) }
        epoch = new
        actions.append(.event(.sessionStarted(id: id)))
        let waiting = backlog
        backlog = []
        for id in waiting { if let request = begin(id, now) { actions.append(.send(request)) } }
        return actions
    }

    enum JoinFailureAction {
        case none
        /// The listed operations fail; the session is tried again after a pause.
        case joinAgain(SessionLife, after: Duration, failing: [(ID, RedisDCError)])
    }

    /// Joining has failed. When the failure is fatal, all operations that wait for the session fail; the attempts go on for
    /// those to come.
    mutating func joinFailed(_ id: String, _ failure: Failure, now: Duration) -> JoinFailureAction {
        guard id == life.id, case .joining(_, let channel) = phase else { return .none }
        phase = .joining(since: now, channel)
        guard case .fatal(let error) = failure else {
            return .joinAgain(life, after: .milliseconds(50), failing: [])
        }
        let waiting = backlog
        backlog = []
        let failing = waiting.filter { drop($0) }.map { ($0, error) }
        return .joinAgain(life, after: .seconds(1), failing: failing)
    }

    /// An earlier attempt had begun this session, and it has ended since: another one is begun.
    mutating func joinedTooLate(_ id: String) -> StartAction {
        guard id == life.id, case .joining = phase else { return .none }
        phase = .subscribing
        life = makeSession()
        return .subscribe(life)
    }

    /// Removes an operation that has not been granted.
    ///
    /// - Returns: whether there was one.
    mutating func drop(_ id: ID) -> Bool {
        guard claims[id] != nil || calls[id] != nil else { return false }
        forget(id)
        calls[id] = nil
        return true
    }

    // MARK: Loss

    enum SessionEndAction {
        case event(CoordinatorEvent)
        case fail(ID, RedisDCError)
        /// The lease is not held any more.
        case lose(ID, RedisDCError)
        case subscribe(SessionLife)
    }

    /// The session has expired by the process's own clock. From then on no holder may be told that it holds anything.
    func isExpired(at now: Duration) -> Bool { isLive && now >= life.end }

    /// What was held is lost. Waits are requested again in the next session, unless they fail with this one.
    mutating func endSession(_ reason: SessionLoss, _ now: Duration) -> [SessionEndAction] {
        guard isLive else { return [] }
        var actions: [SessionEndAction] = [.event(.sessionLost(id: life.id, reason))]
        let error = RedisDCError(.lost, "the session was lost: \(reason)")
        life.finish()
        phase = .subscribing
        life = makeSession()
        for id in claims.keys.sorted() {
            switch claims[id]!.state {
            case .idle: break
            case .requested, .queued:
                if settings.failsWaitersOnLoss || claims[id]!.request.failsOnLoss {
                    claims[id] = nil
                    actions.append(.fail(id, error))
                } else {
                    claims[id]!.state = .idle
                    postpone(id, now)
                }
            case .abandoned(_, let reason):
                claims[id] = nil
                actions.append(.fail(id, reason))
            case .held:
                claims[id] = nil
                actions.append(.lose(id, error))
            case .releasing(_, _, let releaser):
                claims[id] = nil
                if let releaser { actions.append(.fail(releaser, error)) }
            }
        }
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) where call.number != nil {
            calls[id] = nil
            let lost = RedisDCError(
                .connectionLost, "the session was lost while the operation was in progress", mayHaveRun: true)
            actions.append(.fail(id, lost))
        }
        return actions + [.subscribe(life)]
    }

    /// Redis will not answer any more, because the client has stopped.
    ///
    /// - Returns: the waits that fail now. Holders keep their leases until the session expires.
    mutating func clientStopped(_ error: RedisDCError) -> [(ID, RedisDCError)] {
        let waiting = claims.filter { _, claim in
            switch claim.state {
            case .idle, .requested, .queued: true
            case .abandoned, .held, .releasing: false
            }
        }
        return waiting.keys.sorted().filter { drop($0) }.map { ($0, error) }
    }

    // MARK: Shutdown

    enum StopAction {
        case finish(ID, Finish)
        case lose(ID, RedisDCError)
    }

    /// Accepts no new work. Waiters fail, holders lose their leases. What is to be ended with the server is left to
    /// ``shutdownRequests()``.
    mutating func stop() -> [StopAction] {
        if isStopped { return [] }
        var leftovers: Leftovers?
        if isLive {
            let held = claims.values.compactMap { claim in claim.number.map { (claim.request.resource.name, $0) } }
            leftovers = Leftovers(claims: held, window: live.window, confirmations: live.confirmations)
        }
        let error = RedisDCError(.stopped, "the coordinator is stopping")
        var actions: [StopAction] = []
        for id in claims.keys.sorted() {
            switch claims[id]!.state {
            case .held: actions.append(.lose(id, error))
            case .releasing(_, _, let releaser):
                if let releaser { actions.append(.finish(releaser, .success(.done(1)))) }
            case .idle, .requested, .queued, .abandoned: actions.append(.finish(id, .failure(error)))
            }
        }
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) {
            var stopped = error
            stopped.mayHaveRun = call.number != nil
            actions.append(.finish(id, .failure(stopped)))
        }
        phase = .stopped(leftovers)
        life.finish()
        (claims, calls, backlog) = ([:], [:], [])
        return actions
    }

    /// Returns the requests that end what was held and waited for; after them the session can be left.
    mutating func shutdownRequests() -> [EngineRequest] {
        guard case .stopped(var leftovers?) = phase else { return [] }
        phase = .stopped(nil)
        var requests = leftovers.claims.map {
            EngineRequest(
                session: life.id, number: leftovers.window.next(), operation: .release(name: $0.name, claim: $0.number))
        }
        while !leftovers.confirmations.isEmpty {
            requests.append(
                EngineRequest(
                    session: life.id, number: leftovers.window.next(),
                    acknowledged: leftovers.confirmations.take(Self.maxAcknowledged), operation: .give(name: "")))
        }
        return requests
    }
}

/// Requests whose consumed permits have arrived, to be confirmed to the server.
struct Confirmations: Sendable {
    private var numbers: [UInt64] = []
    /// When they are to be sent at the latest; `nil` when there are none.
    private(set) var dueAt: Duration?

    var isEmpty: Bool { numbers.isEmpty }

    mutating func add(_ number: UInt64, at due: Duration) {
        numbers.append(number)
        dueAt = dueAt ?? due
    }

    /// Puts back what a failed request has not confirmed.
    mutating func putBack(_ earlier: [UInt64], at due: Duration) {
        guard !earlier.isEmpty else { return }
        numbers = earlier + numbers
        dueAt = dueAt ?? due
    }

    /// Removes at most `count`. What is left is due immediately.
    mutating func take(_ count: Int) -> [UInt64] {
        if numbers.isEmpty { return [] }
        let taken = Array(numbers.prefix(count))
        numbers.removeFirst(taken.count)
        dueAt = numbers.isEmpty ? nil : .zero
        return taken
    }

    mutating func postpone(to due: Duration) { if dueAt != nil { dueAt = due } }

    func contains(_ number: UInt64) -> Bool { numbers.contains(number) }
}
