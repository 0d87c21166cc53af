// Deadlines, heartbeats and the end of the session by the process's own clock.
import HeapModule

extension EngineStateMachine {
    mutating func remind(_ id: ID, at deadline: Duration) {
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
    mutating func expire(_ now: Duration) -> [Action] {
        phase == .live && now >= session.end ? lose(.expired, now) : []
    }

    mutating func due(_ id: ID, _ now: Duration) -> [Action] {
        if let call = calls[id] {
            guard call.number == nil else { return [] }
            return drop(id, RedisDCError(.notConnected, "no session with Redis within \(settings.callTimeout)"))
        }
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .idle, .asked, .queued:
            if claim.deadline == nil, !claim.request.queues, claim.number == nil {
                return drop(id, RedisDCError(.notConnected, "no session with Redis within \(settings.callTimeout)"))
            }
            guard claim.deadline != nil else { return [] }
            return abandon(
                id, RedisDCError(.timedOut, "\"\(claim.request.resource.name)\" was not to be had in time"), now: now)
        case .leaving(_, let error):
            // The caller has waited long enough; its claim goes on being ended.
            let number = claim.number!
            claims[id] = nil
            claimOf[number] = nil
            var unsettled = error
            // Who cannot be told whether the others have passed with it must know that they may have.
            if claim.request.way == .arrive { unsettled.mayHaveRun = true }
            return [.finish(id, .failure(unsettled))]
        case .held, .releasing: return []
        }
    }

    mutating func beaten(_ sent: Duration, _ reply: EngineReply, _ now: Duration) -> [Action] {
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
        for name in duties.names { actions.append(send(.give(name: name), .background)) }
        if let dead = duties.dead {
            for claim in dead.claims {
                let release = Operation.release(name: claim.name, claim: claim.number, owner: dead.session)
                actions.append(send(release, .background))
            }
            // There may be more of them, and then the session's own record goes.
            heartbeatAt = now + .milliseconds(10)
        }
        return actions
    }
}
