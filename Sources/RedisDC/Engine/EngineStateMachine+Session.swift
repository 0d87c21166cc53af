// How a session begins, is lost, is followed by another, and ends.
import DequeModule
import CoordinationBase

extension EngineStateMachine {
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

    /// Redis will not answer any more. Who waits is told now; who holds something has it until the session's time is over.
    mutating func refused(_ error: RedisDCError) -> [Action] {
        var actions: [Action] = []
        for id in claims.keys.sorted() {
            switch claims[id]!.state {
            case .idle, .asked, .queued: actions += drop(id, error)
            case .leaving, .held, .releasing: break
            }
        }
        return actions
    }

    /// An earlier attempt had begun this session and it has ended since: another one is begun.
    mutating func joinedTooLate(_ id: String) -> [Action] {
        guard id == session.id, phase == .joining else { return [] }
        phase = .listening
        session = makeSession()
        return [.listen(session)]
    }

    /// What was held is not held any more; what waits will ask again in a new session.
    mutating func lose(_ reason: SessionLoss, _ now: Duration) -> [Action] {
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
                if settings.failsWaitersOnLoss || claims[id]!.request.failsOnLoss {
                    actions += drop(id, error)
                } else {
                    claims[id]!.state = .idle
                    postpone(id, now)
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

    /// Takes no new work. Waiters are let go and holders told. What is to be ended with the server is left to `shutdownRequests`.
    mutating func stop() -> [Action] {
        guard phase != .stopped else { return [] }
        leftovers =
            phase == .live
            ? claims.values.compactMap { claim in claim.number.map { (claim.request.resource.name, $0) } } : []
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
    mutating func shutdownRequests() -> [EngineRequest] {
        defer { leftovers = [] }
        var all = leftovers.map {
            EngineRequest(
                session: session.id, number: window.next(), operation: .release(name: $0.name, claim: $0.number))
        }
        while !acknowledgements.isEmpty {
            let some = Array(acknowledgements.prefix(Self.maxAcknowledged))
            acknowledgements.removeFirst(some.count)
            all.append(
                EngineRequest(
                    session: session.id, number: window.next(), acknowledged: some, operation: .give(name: "")))
        }
        return all
    }
}
