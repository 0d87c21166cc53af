// Deadlines, heartbeats, and the expiry of the session by the process's own clock.
import HeapModule

extension EngineStateMachine {
    /// Schedules a deadline of an operation, which ``tick(now:)`` handles.
    mutating func scheduleDeadline(_ id: ID, at deadline: Duration) {
        // Deadlines of ended operations stay in the heap. They are purged when it has more than 64 entries, and more
        // than 4 for each live operation.
        if deadlines.count > 64, deadlines.count > 4 * (claims.count + calls.count) {
            deadlines = Heap(deadlines.unordered.filter { claims[$0.id] != nil || calls[$0.id] != nil })
        }
        deadlines.insert(Deadline(at: deadline, id: id))
    }

    /// The time at which ``tick(now:)`` must be called next; `nil` when there is none.
    var nextTick: Duration? {
        var next = deadlines.min?.at
        func consider(_ at: Duration?) { if let at { next = min(next ?? at, at) } }
        guard case .live(let session) = phase else { return next }
        consider(life.end)
        consider(session.slots.dueAt)
        if case .due(let at) = session.heartbeat { consider(at) }
        if case .unsubscribed(let pollAt) = session.channel { consider(pollAt) }
        return next
    }

    enum TickAction {
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
        case fail(ID, RedisDCError)
        case event(CoordinatorEvent)
    }

    /// Handles the passing of time: the expiry of the session, deadlines, heartbeats, and polling without a
    /// subscription.
    mutating func tick(now: Duration) -> [TickAction] {
        var actions: [TickAction] = []
        if isExpired(at: now) { actions.append(.sessionEnded(endSession(.expired, now))) }
        while let first = deadlines.min, first.at <= now {
            deadlines.removeMin()
            switch deadlinePassed(first.id, now) {
            case .none: break
            case .send(let request): actions.append(.send(request))
            // Permits that were consumed before could not be consumed again.
            case .fail(let id, _) where Self.isOwn(id): actions.append(.event(.dataLost))
            case .fail(let id, let error): actions.append(.fail(id, error))
            }
        }
        guard isLive else { return actions }
        if let request = heartbeatIfDue(now) { actions.append(.send(request)) }
        for request in confirmationsIfDue(now) { actions.append(.send(request)) }
        if case .unsubscribed(let pollAt) = live.channel, pollAt <= now {
            live.channel = .unsubscribed(pollAt: now + settings.pollInterval)
            let isWaiting = claims.values.contains { if case .queued = $0.state { true } else { false } }
            if isWaiting, let request = reconcile() { actions.append(.send(request)) }
        }
        return actions
    }

    /// Handles an operation whose timeout, `callTimeout` or `settleTimeout` has passed.
    private mutating func deadlinePassed(_ id: ID, _ now: Duration) -> AbandonAction {
        if let call = calls[id] {
            guard call.number == nil, drop(id) else { return .none }
            return .fail(id, notSent("use \"\(call.operation.name)\""))
        }
        guard let claim = claims[id] else { return .none }
        switch claim.state {
        case .idle, .requested, .queued:
            if let timeout = claim.limit?.timeout {
                let isQueued = if case .queued = claim.state { true } else { false }
                let error: RedisDCError =
                    isQueued
                    ? claim.request.notGranted(within: timeout) : .timedOut(claim.request.purpose, after: timeout)
                return abandon(id, error, now: now)
            }
            guard !claim.request.mayQueue, claim.number == nil, drop(id) else { return .none }
            return .fail(id, notSent(claim.request.purpose))
        // The answer of Redis is awaited.
        case .abandoned where Self.isOwn(id): return .none
        case .abandoned(let number, let error):
            // The caller stops waiting. The request that ends its claim stays in flight and is repeated if necessary.
            claims[id] = nil
            live.claimIDs[number] = nil
            var unsettled = error
            // It is not known whether the other parties have passed together with this one.
            if claim.request.action == .arrive { unsettled.mayHaveRun = true }
            return .fail(id, unsettled)
        case .held, .releasing: return .none
        }
    }

    /// The error of an operation that has spent `callTimeout` in the backlog.
    private func notSent(_ purpose: String) -> RedisDCError {
        RedisDCError(
            .notConnected,
            "cannot \(purpose): nothing was sent within \(settings.callTimeout), because there was no session with "
                + "Redis or \(Self.maxPending) requests were in flight; check that the server is reachable")
    }

    // MARK: Heartbeats

    /// Returns a heartbeat when it is due. Only one is in flight at a time.
    private mutating func heartbeatIfDue(_ now: Duration) -> EngineRequest? {
        guard case .due(let at) = live.heartbeat, at <= now else { return nil }
        return heartbeat(now)
    }

    /// Handles the request of Redis to look at the sessions now: another process needs this one to look when its session
    /// expires, which may be before the next heartbeat.
    mutating func looksNow(_ now: Duration) {
        switch live.heartbeat {
        case .due(let at): live.heartbeat = .due(at: min(at, now))
        case .inFlight: live.heartbeat = .inFlight(next: now)
        }
    }

    mutating func heartbeat(_ now: Duration) -> EngineRequest {
        live.heartbeat = .inFlight(next: now + settings.heartbeatInterval)
        // A cohort hands out later fences than the one of its claim.
        for claim in claims.values { highestFence = max(highestFence, claim.request.cohort?.lastFence ?? 0) }
        let heartbeat = Heartbeat(
            session: life.id, ttl: settings.ttl, seen: live.seen, fence: highestFence,
            connection: live.notices.connection)
        return makeRequest(heartbeat, .heartbeat(sent: now, notices: live.notices.count))
    }

    /// Returns requests with the confirmations that are due.
    private mutating func confirmationsIfDue(_ now: Duration) -> [EngineRequest] {
        guard let due = live.slots.dueAt, due <= now else { return [] }
        return live.slots.takeConfirmations(inSharesOf: Self.maxConfirmations).map { confirm($0) }
    }

    /// Returns the request that confirms the arrival of consumed permits.
    mutating func confirm(_ permits: [Slots.Confirmation]) -> EngineRequest {
        makeRequest(Confirm(session: life.id, claims: permits), .confirm(permits))
    }

    /// Handles the reply to a heartbeat: extends the session, compares what was seen, and carries out maintenance work.
    ///
    /// - Parameter known: the notices that the session knew when it sent the heartbeat.
    mutating func heartbeatAnswered(
        _ sent: Duration, notices known: UInt64, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        if case .inFlight(let next) = live.heartbeat { live.heartbeat = .due(at: next) }
        guard case .heartbeat(let notices, let isDataLost, let work) = reply else { return [] }
        // Two heartbeats may be in flight after a reconnect.
        life.extend(to: max(life.end, sent + settings.ttl - settings.margin))
        var actions: [ReplyAction] = []
        if isDataLost {
            live.seen = nil
            if live.comparison != nil { live.comparison!.isLost = true } else { actions.append(.event(.dataLost)) }
        }
        let isComplete = live.notices.compare(with: notices, known: known)
        // A comparison reads the list of claims anyway.
        if (isDataLost || !isComplete) && live.comparison == nil {
            if let request = reconcile() { actions.append(.send(request)) }
        }
        if work.isUnlisted { actions.append(.send(makeRequest(ListSessions(cursor: 0), .listSessions))) }
        for name in work.names { actions.append(.send(makeRequest(Recheck(name: name)))) }
        for session in work.expired {
            actions.append(.send(sweep(session, hasClaims: false, isSecond: false)))
        }
        // One reply lists a limited number of expired sessions.
        if work.expired.count >= 64 { live.heartbeat = .due(at: now + .milliseconds(10)) }
        sendEarlyHeartbeat(after: work, now)
        return actions
    }

    /// Lets the next heartbeat come early, when Redis asks for it, or when those that were received for a sweep are listed
    /// again if they still exist.
    private mutating func sendEarlyHeartbeat(after work: EngineReply.MaintenanceWork, _ now: Duration) {
        guard case .due(let regular) = live.heartbeat else { return }
        var waits: [Duration] = []
        if let next = work.next { waits.append(next) }
        if !work.expired.isEmpty { waits.append(.seconds(1)) }
        guard let wait = waits.min() else { return }
        live.heartbeat = .due(at: min(regular, now + wait + .milliseconds(1)))
    }
}
