// Deadlines, heartbeats, and the expiry of the session by the process's own clock.
import HeapModule

extension EngineStateMachine {
    /// Looks at an operation again at its deadline.
    mutating func remind(_ id: ID, at deadline: Duration) {
        // Those of ended operations stay until their time. When they are the majority, they are removed.
        if deadlines.count > 64, deadlines.count > 4 * (claims.count + calls.count) {
            deadlines = Heap(deadlines.unordered.filter { claims[$0.id] != nil || calls[$0.id] != nil })
        }
        deadlines.insert(Deadline(at: deadline, id: id))
    }

    /// When to call `tick` next.
    var nextTick: Duration? {
        var next = deadlines.min?.at
        func consider(_ at: Duration?) { if let at { next = min(next ?? at, at) } }
        guard case .live(let session) = phase else { return next }
        consider(life.end)
        consider(session.confirmations.dueAt)
        if case .due(let at) = session.heartbeat { consider(at) }
        if case .unsubscribed(let pollAt) = session.channel { consider(pollAt) }
        return next
    }

    enum TickAction {
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
        case fail(ID, RedisDCError)
    }

    mutating func tick(now: Duration) -> [TickAction] {
        var actions: [TickAction] = []
        if isExpired(at: now) { actions.append(.sessionEnded(endSession(.expired, now))) }
        while let first = deadlines.min, first.at <= now {
            deadlines.removeMin()
            switch deadlinePassed(first.id, now) {
            case .none: break
            case .send(let request): actions.append(.send(request))
            case .fail(let id, let error): actions.append(.fail(id, error))
            }
        }
        guard isLive else { return actions }
        if let request = heartbeatIfDue(now) { actions.append(.send(request)) }
        if case .unsubscribed(let pollAt) = live.channel, pollAt <= now {
            live.channel = .unsubscribed(pollAt: now + settings.pollInterval)
            let isWaiting = claims.values.contains { if case .queued = $0.state { true } else { false } }
            if isWaiting, let request = reconcile() { actions.append(.send(request)) }
        }
        return actions
    }

    private mutating func deadlinePassed(_ id: ID, _ now: Duration) -> AbandonAction {
        if let call = calls[id] {
            guard call.number == nil, drop(id) else { return .none }
            return .fail(id, notConnected)
        }
        guard let claim = claims[id] else { return .none }
        switch claim.state {
        case .idle, .requested, .queued:
            if let timeout = claim.timeout {
                return abandon(id, .timedOut("acquire \(claim.request.resource)", after: timeout), now: now)
            }
            guard !claim.request.queues, claim.number == nil, drop(id) else { return .none }
            return .fail(id, notConnected)
        case .abandoned(let number, let error):
            // The caller has waited long enough. Its claim is still being ended.
            claims[id] = nil
            live.claimIDs[number] = nil
            var unsettled = error
            // Whether the other parties have passed with it is not known.
            if claim.request.way == .arrive { unsettled.mayHaveRun = true }
            return .fail(id, unsettled)
        case .held, .releasing: return .none
        }
    }

    private var notConnected: RedisDCError {
        RedisDCError(
            .notConnected, "no session with Redis within \(settings.callTimeout); check that the server is reachable")
    }

    // MARK: Heartbeats

    private mutating func heartbeatIfDue(_ now: Duration) -> EngineRequest? {
        let confirmationIsDue = live.confirmations.dueAt.map { $0 <= now } ?? false
        switch live.heartbeat {
        case .due(let at) where at <= now || confirmationIsDue:
            live.heartbeat = .inFlight(next: now + settings.heartbeatInterval)
            return send(.heartbeat, .heartbeat(sent: now))
        case .inFlight where confirmationIsDue:
            live.confirmations.postpone(to: now + settings.acknowledgeDelay)
            return nil
        case .due, .inFlight: return nil
        }
    }

    mutating func heartbeatAnswered(_ sent: Duration, _ reply: EngineReply, _ now: Duration) -> [ReplyAction] {
        if case .inFlight(let next) = live.heartbeat { live.heartbeat = .due(at: next) }
        guard case .heartbeat(let grants, let claims, let duties) = reply else { return [] }
        life.extend(to: sent + settings.ttl - settings.margin)
        // The counts must agree only when nothing is in flight.
        let isQuiet = live.pending.isEmpty && live.confirmations.isEmpty
        var actions: [ReplyAction] = []
        if grants != live.grants || (isQuiet && claims != self.claims.count) {
            live.grants = grants
            if let request = reconcile() { actions.append(.send(request)) }
        }
        for name in duties.names { actions.append(.send(send(.give(name: name), .background))) }
        if let dead = duties.dead {
            for claim in dead.claims {
                let release = Operation.release(name: claim.name, claim: claim.number, owner: dead.session)
                actions.append(.send(send(release, .background)))
            }
            // There may be more of them. When there are none, the session's own record goes.
            live.heartbeat = .due(at: now + .milliseconds(10))
        }
        return actions
    }
}
