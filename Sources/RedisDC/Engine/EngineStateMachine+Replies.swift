// Replies of Redis, and what they mean for the claim, call or lease that they are about.
import CoordinationBase
import DequeModule
import Hiredis

/// An action that sends a request. Enums of several events have such a case, so that one function can serve them all.
protocol SendingAction { static func send(_ request: EngineRequest) -> Self }

/// An action that ends an operation.
protocol FinishingAction {
    static func finish(_ id: EngineStateMachine.ID, _ result: EngineStateMachine.Finish) -> Self
}

extension EngineStateMachine {
    enum ReplyAction: SendingAction, FinishingAction {
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
        /// Sends the same request again.
        case retry(EngineRequest, after: Duration)
        case finish(ID, Finish)
        /// The lease is not held any more.
        case lose(ID, RedisDCError)
        case event(CoordinatorEvent)
    }

    /// A request was answered, or has failed.
    mutating func reply(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, now: Duration
    ) -> [ReplyAction] {
        if isExpired(at: now) { return [.sessionEnded(endSession(.expired, now))] }
        guard isLive, request.session == life.id, let entry = live.pending[request.number] else { return [] }
        switch result {
        case .failure(.retry(let error)):
            return [retry(entry, error)]
        case .failure(.fatal(let error)):
            settle(request.number)
            live.confirmations.putBack(request.acknowledged, at: now + settings.heartbeatInterval)
            return failed(entry, error, now) + requestsFromBacklog(now)
        case .success(.lost(let isExpired)):
            return [.sessionEnded(endSession(isExpired || now >= life.end ? .expired : .dataLost, now))]
        case .success(let reply):
            settle(request.number)
            return answered(entry, reply, now) + requestsFromBacklog(now)
        }
    }

    private mutating func settle(_ number: UInt64) {
        live.pending[number] = nil
        live.window.settle(number)
    }

    /// Begins what has waited for fewer requests to be in flight.
    private mutating func requestsFromBacklog(_ now: Duration) -> [ReplyAction] {
        var actions: [ReplyAction] = []
        while live.pending.count < Self.maxPending, let next = backlog.popFirst() {
            if let request = begin(next, now) { actions.append(.send(request)) }
        }
        return actions
    }

    private mutating func retry(_ entry: Session.Pending, _ error: RedisError) -> ReplyAction {
        let number = entry.request.number
        live.pending[number]!.failures += 1
        if case .call(let id) = entry.purpose, error.mayHaveRun { calls[id]?.mayHaveRun = true }
        return .retry(entry.request, after: .milliseconds(10 << min(entry.failures, 6)))
    }

    // MARK: Answered

    private mutating func answered(_ entry: Session.Pending, _ reply: EngineReply, _ now: Duration) -> [ReplyAction] {
        let operation = entry.request.operation
        switch entry.purpose {
        case .claim(let id): return claimAnswered(id, entry.request.number, reply, now)
        case .end(let id): return endAnswered(id, operation, reply, now) + requestForWaiters(operation, reply)
        case .call(let id):
            calls[id] = nil
            if case .pass(_, let number, _, _) = operation {
                if case .done = reply { live.claimIDs[number].map { forget($0) } } else { keep(number) }
            }
            return [.finish(id, outcome(of: operation, reply))] + requestForWaiters(operation, reply)
        case .heartbeat(let sent): return heartbeatAnswered(sent, reply, now)
        case .reconcile(let known, let found): return reconcileAnswered(known, found, reply, now)
        case .background: return requestForWaiters(operation, reply)
        }
    }

    private mutating func claimAnswered(
        _ id: ID, _ number: UInt64, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        guard let claim = claims[id], case .requested(number) = claim.state else { return [] }
        switch reply {
        case .granted(let fence, let value): return granted(id, number, fence, value, now)
        case .queued:
            claims[id]!.state = .queued(number)
            return releaseOfOther(for: id).map { [.send($0)] } ?? []
        case .none:
            forget(id)
            return [.finish(id, .success(.notAvailable))]
        default:
            forget(id)
            return [.finish(id, outcome(of: .claim(claim.request), reply))]
        }
    }

    /// The claim was granted, as a reply or a hint says.
    mutating func granted<Action: SendingAction & FinishingAction>(
        _ id: ID, _ number: UInt64, _ fence: UInt64, _ value: UInt64, _ now: Duration
    ) -> [Action] {
        var actions: [Action] = []
        if let request = releaseOfOther(for: id) { actions.append(.send(request)) }
        let isLease = claims[id]!.request.mode != .consume
        let grant = Grant(
            claim: id, fence: fence, value: value, life: life, watch: isLease ? LeaseWatch() : nil)
        if isLease {
            claims[id]!.state = .held(number, fence: fence)
        } else {
            forget(id)
            live.confirmations.add(number, at: now + settings.acknowledgeDelay)
        }
        actions.append(.finish(id, .success(.granted(grant))))
        return actions
    }

    /// The claim has its place, so the claim that it replaces is released.
    private mutating func releaseOfOther(for id: ID) -> EngineRequest? {
        guard let claim = claims[id], !claim.hasReleasedOther, case .releases(let other)? = claim.request.detail else {
            return nil
        }
        claims[id]!.hasReleasedOther = true
        return beginRelease(other, releaser: nil)
    }

    private mutating func endAnswered(
        _ id: ID, _ operation: Operation, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        if case .granted(let fence, let value) = reply, case .leave(let name, let number) = operation {
            // It was granted before it could leave. If the caller no longer waits, it is released.
            guard case .abandoned? = claims[id]?.state else {
                return [.send(send(.release(name: name, claim: number), .background))]
            }
            return granted(id, number, fence, value, now)
        }
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .abandoned(_, let error):
            forget(id)
            return [.finish(id, .failure(error))]
        case .releasing(_, _, let releaser):
            forget(id)
            // A release whose reply was lost finds nothing the second time. It was held, or the session would be lost.
            return releaser.map { [.finish($0, .success(.done(1)))] } ?? []
        case .idle, .requested, .queued, .held: return []
        }
    }

    /// More waiters can be granted something than one script handles.
    private mutating func requestForWaiters(_ operation: Operation, _ reply: EngineReply) -> [ReplyAction] {
        guard case .done(_, let more) = reply, more, operation.mayLeaveWaiters else { return [] }
        return [.send(send(.give(name: operation.name), .background))]
    }

    // MARK: Failed

    private mutating func failed(_ entry: Session.Pending, _ error: RedisDCError, _ now: Duration) -> [ReplyAction] {
        switch entry.purpose {
        case .claim(let id): return drop(id) ? [.finish(id, .failure(error))] : []
        case .end(let id):
            // The end of the session will free it.
            guard let claim = claims[id] else { return [] }
            forget(id)
            switch claim.state {
            case .abandoned(_, let reason): return [.finish(id, .failure(reason))]
            case .releasing(_, _, let releaser): return releaser.map { [.finish($0, .failure(error))] } ?? []
            case .idle, .requested, .queued, .held: return []
            }
        case .call(let id):
            var error = error
            if calls[id]?.mayHaveRun == true { error.mayHaveRun = true }
            calls[id] = nil
            if case .pass(_, let number, _, _) = entry.request.operation { keep(number) }
            return [.finish(id, .failure(error))]
        case .heartbeat:
            live.heartbeat = .due(at: now + .milliseconds(200))
            return []
        case .reconcile:
            live.reconciliation = .none
            return []
        case .background: return []
        }
    }

    /// The lease that was to be passed on is still held.
    private mutating func keep(_ number: UInt64) {
        guard let id = live.claimIDs[number], case .releasing(_, let fence, _)? = claims[id]?.state else { return }
        claims[id]!.state = .held(number, fence: fence)
    }

    // MARK: Outcomes

    private func outcome(of operation: Operation, _ reply: EngineReply) -> Finish {
        let name = operation.name
        switch reply {
        case .done(let count, _): return .success(.done(count))
        case .values(let values): return .success(.values(values))
        case .none: return .failure(RedisDCError(.lost, "\"\(name)\" is not held any more"))
        case .conflict(let kind, let permits, let policy):
            let found = Resource.describe(Resource.Kind(rawValue: kind), permits: permits, policy: policy)
            let wanted = operation.resource.map { "; this call expects \($0.configuration)" } ?? ""
            return .failure(RedisDCError(.conflict, "\"\(name)\" is \(found)\(wanted)"))
        case .broken:
            return .failure(
                RedisDCError(
                    .broken,
                    "\"\(name)\" is broken, because a party died or gave up; destroy it and create it again"))
        case .over:
            return .failure(
                RedisDCError(.lost, "\"\(name)\" was destroyed, or taken away by an operator, before the reply came"))
        case .missing:
            return .failure(
                RedisDCError(.notFound, "there is no semaphore \"\(name)\"; create it with a number of permits"))
        case .gone: return .failure(RedisDCError(.destroyed, "\"\(name)\" was destroyed"))
        case .granted, .queued, .lost, .stale, .heartbeat, .page:
            return .failure(RedisDCError(.serverError, "unexpected reply \(reply) for \"\(name)\""))
        }
    }
}
