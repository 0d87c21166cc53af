// Replies of Redis, and their effect on claims, calls and leases.
import CoordinationBase
import DequeModule
import Hiredis

/// An action that sends a request. The enums of several events conform, so that a generic function can serve them all.
protocol SendingAction { static func send(_ request: EngineRequest) -> Self }

/// An action that ends an operation.
protocol FinishingAction {
    static func finish(_ id: EngineStateMachine.ID, _ result: EngineStateMachine.Finish) -> Self
}

/// An action on a claim that a hint or the comparison with Redis is about.
protocol HintedAction: SendingAction, FinishingAction {
    static func lose(_ id: EngineStateMachine.ID, _ error: RedisDCError) -> Self
}

extension EngineStateMachine {
    enum ReplyAction: HintedAction {
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
        /// Sends the same request again.
        case retry(EngineRequest, after: Duration)
        case finish(ID, Finish)
        /// The lease is lost.
        case lose(ID, RedisDCError)
        case event(CoordinatorEvent)
    }

    /// Handles the reply to a request, or its failure. Ignores it when the request is of another session.
    mutating func reply(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, now: Duration
    ) -> [ReplyAction] {
        if isExpired(at: now) { return [.sessionEnded(endSession(.expired, now))] }
        guard isLive, request.session == life.id, let entry = live.pending[request.number] else { return [] }
        switch result {
        case .failure(.retry(let error)):
            return [retry(entry, error)]
        case .failure(.fatal(var error)):
            if let request = settle(entry, .error(error)) { return [.send(request)] }
            live.pending[request.number] = nil
            if entry.mayComeLate, entry.request.operation.takesSlot { error.mayHaveRun = true }
            notWritten(entry, now + settings.heartbeatInterval)
            return failed(entry, error, now) + requestsFromBacklog(now)
        case .success(.lost(let isExpired)):
            return [.sessionEnded(endSession(isExpired || now >= life.end ? .expired : .dataLost, now))]
        case .success(.family(let family)):
            return [.send(serve(entry, family))]
        case .success(.again):
            // Later than usual, because another script must run in between.
            return [.retry(entry.request, after: .milliseconds(5))]
        case .success(.occupied):
            live.pending[request.number] = nil
            return occupied(entry, now) + requestsFromBacklog(now)
        case .success(.stale) where hasDamagedSlot(entry):
            live.pending[request.number] = nil
            return occupied(entry, now) + requestsFromBacklog(now)
        case .success(let reply):
            if reply.isRefusal, let request = settle(entry, .reply(reply)) { return [.send(request)] }
            live.pending[request.number] = nil
            if let change = entry.request.change(by: reply) { live.seen = change }
            if !reply.hasWritten {
                notWritten(entry, now + settings.confirmationDelay)
            }
            return answered(entry, reply, now) + requestsFromBacklog(now)
        }
    }

    /// Returns the request that makes sure that a refused one has no effect, if a copy of it may still arrive: the refusal
    /// counts when Redis has confirmed it. `nil` when no copy can arrive, or when another request ends the claim.
    private mutating func settle(_ entry: Session.Pending, _ refusal: Session.Refusal) -> EngineRequest? {
        guard entry.mayComeLate, entry.refusal == nil else { return nil }
        var request = entry.request
        switch entry.purpose {
        case .claim(let id): guard isRequested(id, request.number) else { return nil }
        case .call: guard request.operation.takesSlot else { return nil }
        case .end, .heartbeat, .reconcile, .sweep, .background: return nil
        }
        request.operation = .settle(request.operation)
        live.pending[request.number]!.request = request
        live.pending[request.number]!.refusal = refusal
        return request
    }

    /// Handles the reply to ``Operation/settle(_:)``: the refusal counts, unless a copy of the request has arrived in
    /// between. Then the reply is that of the copy.
    private mutating func settled(
        _ entry: Session.Pending, _ operation: Operation, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        var entry = entry
        entry.request.operation = operation
        guard case .settled = reply, let refusal = entry.refusal else { return answered(entry, reply, now) }
        if case .call(let id) = entry.purpose { calls[id]?.mayHaveRun = false }
        switch refusal {
        case .reply(let reply): return answered(entry, reply, now)
        case .error(let error): return failed(entry, error, now)
        }
    }

    /// Handles a request that has not written to its slot: what its success would have confirmed is still unconfirmed.
    private mutating func notWritten(_ entry: Session.Pending, _ due: Duration) {
        if case .confirm(let claims) = entry.request.operation {
            for claim in claims { live.slots.addUnconfirmed(claim.slot, claim.number, at: due) }
        }
        if let slot = entry.request.slot, let number = entry.confirms {
            live.slots.addUnconfirmed(slot, number, at: due)
        }
    }

    /// Returns the same request for the script of another family.
    private mutating func serve(_ entry: Session.Pending, _ family: Family) -> EngineRequest {
        var request = entry.request
        request.family = family
        live.pending[request.number]!.request = request
        if case .claim(let id) = entry.purpose { claims[id]?.family = family }
        return request
    }

    /// Whether the slot of a request that is stale has a damaged record, because no later request has used the slot.
    private func hasDamagedSlot(_ entry: Session.Pending) -> Bool {
        switch entry.purpose {
        case .claim(let id): entry.failures == 0 && isRequested(id, entry.request.number)
        case .call: entry.failures == 0 && entry.request.operation.takesSlot
        case .end, .heartbeat, .reconcile, .sweep, .background: false
        }
    }

    /// Whether the request for a claim has no answer yet, and no other one is to end the claim.
    private func isRequested(_ id: ID, _ number: UInt64) -> Bool {
        if case .requested(number)? = claims[id]?.state { true } else { false }
    }

    /// The pause before a request is made again in another slot. Without it, a server on which all slots seem occupied
    /// would be asked as fast as it answers.
    private static let pauseWhenOccupied = Duration.milliseconds(20)

    /// Handles a slot that has a claim which this process has ended, because Redis has lost the end, or a slot with a
    /// damaged record. The request is made again in another slot, and the comparison with Redis ends the claim. This slot
    /// is not used again in this session.
    private mutating func occupied(_ entry: Session.Pending, _ now: Duration) -> [ReplyAction] {
        var actions: [ReplyAction] = [.event(.dataLost)]
        if let request = reconcile() { actions.append(.send(request)) }
        switch entry.purpose {
        case .claim(let id):
            // The end of a claim that nobody wants any more is on its way.
            guard isRequested(id, entry.request.number) else { break }
            live.claimIDs[entry.request.number] = nil
            claims[id]!.state = .idle
            actions += beginAgain(id, now)
        case .call(let id):
            calls[id]?.number = nil
            actions += beginAgain(id, now)
        case .end, .heartbeat, .reconcile, .sweep, .background: break
        }
        return actions
    }

    /// Returns the request of a claim or call that was sent before. It precedes those in the backlog.
    private mutating func beginAgain(_ id: ID, _ now: Duration) -> [ReplyAction] {
        guard live.pending.count < Self.maxPending else {
            postpone(id, now, isFirst: true)
            return []
        }
        return begin(id, now).map { [.retry($0, after: Self.pauseWhenOccupied)] } ?? []
    }

    /// Returns requests for claims and calls of the backlog, until `maxPending` requests are in flight.
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
        if error.mayHaveRun { live.pending[number]!.mayComeLate = true }
        if case .call(let id) = entry.purpose, error.mayHaveRun { calls[id]?.mayHaveRun = true }
        return .retry(entry.request, after: .milliseconds(10 << min(entry.failures, 6)))
    }

    // MARK: Answered

    private mutating func answered(_ entry: Session.Pending, _ reply: EngineReply, _ now: Duration) -> [ReplyAction] {
        let operation = entry.request.operation
        if case .settle(let refused) = operation { return settled(entry, refused, reply, now) }
        switch entry.purpose {
        case .claim(let id): return claimAnswered(id, entry.request.number, reply, now)
        case .end(let id):
            return endAnswered(id, entry, reply, now) + requestForWaiters(operation, reply)
        case .call(let id):
            calls[id] = nil
            if operation.takesSlot, let slot = entry.request.slot { live.slots.give(slot) }
            if case .pass(_, let number, _, _, _) = operation {
                if case .done = reply { live.claimIDs[number].map { forgetEnded($0) } } else { restoreHeld(number) }
            }
            var actions: [ReplyAction] = [.finish(id, outcome(of: operation, reply))]
            if case (.extendFences, .none) = (operation, reply), let request = reconcile() {
                actions.append(.send(request))
            }
            return actions + requestForWaiters(operation, reply)
        case .heartbeat(let sent, let notices): return heartbeatAnswered(sent, notices: notices, reply, now)
        case .reconcile(let known, let found): return reconcileAnswered(known, found, reply, now)
        case .sweep(let hasClaims, let isSecond): return sweepAnswered(operation, reply, hasClaims, isSecond)
        case .background:
            if case .release = operation, case .done = reply, let slot = entry.request.slot { live.slots.give(slot) }
            if case .listSessions = operation, case .done(let cursor, _) = reply, cursor > 0 {
                return [.send(makeRequest(.listSessions(cursor: cursor), .background))]
            }
            if case (.setAside(let claim, let name), .done(count: 1, _)) = (operation, reply) {
                return [.event(.claimSetAside(id: claim.description, resource: name))]
            }
            return requestForWaiters(operation, reply)
        }
    }

    private mutating func claimAnswered(
        _ id: ID, _ number: UInt64, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        guard let claim = claims[id], case .requested(number) = claim.state else { return [] }
        switch reply {
        case .granted(let fence, let arrival): return granted(id, number, fence, arrival, now)
        case .queued(let more):
            claims[id]!.state = .queued(number)
            var actions: [ReplyAction] = []
            if let request = releaseOfReplacedClaim(for: id) { actions.append(.send(request)) }
            if more {
                actions.append(.send(makeRequest(.recheck(name: claim.request.resource.name), .background)))
            }
            return actions
        case .none:
            forgetEnded(id)
            return [.finish(id, .success(.notAvailable))]
        default:
            forgetEnded(id)
            return [.finish(id, outcome(of: .claim(claim.request), reply))]
        }
    }

    /// Handles the grant of a claim by a reply, a hint or a reconciliation.
    mutating func granted<Action: SendingAction & FinishingAction>(
        _ id: ID, _ number: UInt64, _ fence: UInt64, _ arrival: UInt64, _ now: Duration
    ) -> [Action] {
        var actions: [Action] = []
        if let request = releaseOfReplacedClaim(for: id) { actions.append(.send(request)) }
        let isLease = claims[id]!.request.mode != .consume
        let grant = Grant(
            claim: id, fence: fence, arrival: arrival, life: life, watch: isLease ? LeaseWatch() : nil)
        if !live.channel.isSubscribed { claims[id]!.request.cohort?.recall(.unknown) }
        if isLease {
            highestFence = max(highestFence, fence)
            claims[id]!.state = .held(number, fence: fence)
        } else if let slot = forget(id)?.slot {
            live.slots.give(slot)
            live.slots.addUnconfirmed(slot, number, at: now + settings.confirmationDelay)
        }
        actions.append(.finish(id, .success(.granted(grant))))
        return actions
    }

    /// Returns the request that releases the claim that this one replaces; `nil` when there is none or it was requested
    /// before. Called when the claim is queued or granted.
    private mutating func releaseOfReplacedClaim(for id: ID) -> EngineRequest? {
        guard let claim = claims[id], !claim.hasReleasedReplacedClaim,
            case .releases(let other)? = claim.request.detail
        else { return nil }
        claims[id]!.hasReleasedReplacedClaim = true
        return beginRelease(other, releaser: nil)
    }

    /// Handles the reply to a request that ends a claim.
    private mutating func endAnswered(
        _ id: ID, _ entry: Session.Pending, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        let request = entry.request
        if case .granted(let fence, let arrival) = reply, case .leave(let resource, let number) = request.operation {
            // The claim was granted before it could leave. If the caller no longer waits, it is released.
            guard case .abandoned? = claims[id]?.state else {
                let release = Operation.release(resource, claim: number, .meetings)
                return [.send(makeRequest(release, .background, slot: request.slot))]
            }
            return granted(id, number, fence, arrival, now)
        }
        if let slot = request.slot { live.slots.give(slot) }
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .abandoned(_, let error):
            forget(id)
            return [.finish(id, .failure(error))]
        case .releasing(_, _, let releaser):
            let error = notHeld(id)
            forget(id)
            // A repeated release finds no claim if the first attempt has succeeded. If the first attempt finds none,
            // the lease was already gone: an operator has released it, or Redis has lost it.
            let isTooLate = if case .done(count: 0, _) = reply { entry.failures == 0 } else { false }
            return releaser.map { [.finish($0, isTooLate ? .failure(error) : .success(.done(1)))] } ?? []
        case .idle, .requested, .queued, .held: return []
        }
    }

    /// Requests the next grants when the script has left waiters over: one script handles a limited number.
    private mutating func requestForWaiters(_ operation: Operation, _ reply: EngineReply) -> [ReplyAction] {
        guard case .done(_, let more) = reply, more else { return [] }
        return [.send(makeRequest(.recheck(name: operation.name), .background))]
    }

    /// Ends the claims of an expired session that the reply lists, and asks for the next ones. When all have been listed
    /// and there were any, a second pass deletes the session. What it finds again is left to the next heartbeat that lists
    /// the session, a second later.
    private mutating func sweepAnswered(
        _ operation: Operation, _ reply: EngineReply, _ hasClaims: Bool, _ isSecond: Bool
    ) -> [ReplyAction] {
        guard case .sweep(let below, let claims) = reply, case .sweep(let session, _) = operation else { return [] }
        if isSecond, !claims.isEmpty { return [] }
        var actions: [ReplyAction] = claims.map { claim in
            .send(makeRequest(.end(claim.id, name: claim.name, claim.family, isForced: false), .background))
        }
        let hasClaims = hasClaims || !claims.isEmpty
        if below > 0 {
            let next = Operation.sweep(session: session, below: below)
            actions.append(.send(makeRequest(next, .sweep(hasClaims: hasClaims, isSecond: isSecond))))
        } else if hasClaims {
            let again = Operation.sweep(session: session, below: nil)
            actions.append(.send(makeRequest(again, .sweep(hasClaims: false, isSecond: true))))
        }
        return actions
    }

    // MARK: Failed

    private mutating func failed(_ entry: Session.Pending, _ error: RedisDCError, _ now: Duration) -> [ReplyAction] {
        switch entry.purpose {
        case .claim(let id):
            // A message may have granted it before.
            guard isRequested(id, entry.request.number) else { return [] }
            // A claim that may exist keeps its slot.
            if let slot = entry.request.slot { live.slots.refuse(slot, entry.request.number) }
            if error.mayHaveRun { forget(id) } else { forgetEnded(id) }
            return [.finish(id, .failure(error))]
        case .end(let id):
            // The server releases the claim when the session ends.
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
            if entry.request.operation.takesSlot, let slot = entry.request.slot { live.slots.give(slot) }
            if case .pass(_, let number, _, _, _) = entry.request.operation { restoreHeld(number) }
            return [.finish(id, .failure(error))]
        case .heartbeat:
            guard error.code == .notPermitted else {
                live.heartbeat = .due(at: now + .milliseconds(200))
                return []
            }
            live.heartbeat = .due(at: now + .seconds(1))
            return [.event(.sessionRefused(error))] + waitsRefused(error, now)
        case .reconcile:
            live.reconciliation = .none
            return waitsRefused(error, now)
        case .background:
            if case .end(let claim, let name, _, isForced: false) = entry.request.operation, error.code == .serverError
            {
                return endFailed(claim, name)
            }
            return waitsRefused(error, now)
        case .sweep: return waitsRefused(error, now)
        }
    }

    /// Handles the failure of a request that no caller waits for. If the user may not run it, the waits fail: a grant may
    /// depend on it, or the notice of one, and it will fail again until someone changes the user's rights.
    private mutating func waitsRefused(_ error: RedisDCError, _ now: Duration) -> [ReplyAction] {
        guard error.code == .notPermitted else { return [] }
        let waiting = claims.filter { if case .queued = $0.value.state { true } else { false } }
        return waiting.keys.sorted().compactMap { id in
            switch abandon(id, error, now: now) {
            case .none: nil
            case .send(let request): .send(request)
            case .fail(let id, let error): .finish(id, .failure(error))
            }
        }
    }

    /// The number of failed attempts after which a claim of an expired session is set aside. One failure may have
    /// another cause than a damaged record, for example an operator who stops the script.
    private static let maxFailedEnds = 3

    /// Handles a claim of an expired session that the server could not end. Each sweep of the session tries it again, a
    /// second later.
    private mutating func endFailed(_ claim: ClaimID, _ name: String) -> [ReplyAction] {
        // Others may have set these claims aside.
        if live.failedEnds.count > 10_000 { live.failedEnds = [:] }
        live.failedEnds[claim, default: 0] += 1
        guard live.failedEnds[claim]! >= Self.maxFailedEnds else { return [] }
        live.failedEnds[claim] = nil
        return [.send(makeRequest(.setAside(claim, name: name), .background))]
    }

    /// Restores the lease of a transfer that failed: it is still held.
    private mutating func restoreHeld(_ number: UInt64) {
        guard let id = live.claimIDs[number], case .releasing(_, let fence, _)? = claims[id]?.state else { return }
        claims[id]!.state = .held(number, fence: fence)
    }

    // MARK: Outcomes

    private func outcome(of operation: Operation, _ reply: EngineReply) -> Finish {
        let name = operation.name
        switch reply {
        case .done(let count, _): return .success(.done(count))
        case .values(let values, let next): return .success(.values(values, next: next))
        case .granted(let end, let waiting):
            if case .extendFences = operation { return .success(.fences(end: end, isAwaited: waiting > 0)) }
            return .failure(RedisDCError(.serverError, "unexpected reply for \"\(name)\""))
        case .known: return .success(.known)
        case .none: return .failure(RedisDCError(.lost, "\"\(name)\" is no longer held"))
        case .conflict(let letters, let permits):
            let found = Resource.describe(
                ResourceKind(letters: letters), permits: permits, policy: letters.unicodeScalars.last)
            let wanted = operation.resource.map { "; this call expects \($0.configuration)" } ?? ""
            return .failure(RedisDCError(.conflict, "\"\(name)\" is \(found)\(wanted)"))
        case .broken:
            return .failure(
                RedisDCError(
                    .broken,
                    "\"\(name)\" is broken, because a party died or gave up; destroy it and create it again"))
        case .over(word: "gone"): return .failure(RedisDCError(.destroyed, "\"\(name)\" was destroyed"))
        case .over:
            return .failure(
                RedisDCError(.lost, "\"\(name)\" was destroyed, or taken away by an operator, before the reply came"))
        case .missing:
            return .failure(
                RedisDCError(
                    .notFound,
                    "semaphore \"\(name)\" does not exist; create it with coordinator.semaphore(_:permits:)"))
        case .gone: return .failure(RedisDCError(.destroyed, "\"\(name)\" was destroyed"))
        case .queued, .settled, .lost, .stale, .occupied, .family, .again, .heartbeat, .page, .sweep:
            return .failure(RedisDCError(.serverError, "unexpected reply for \"\(name)\""))
        }
    }
}

extension EngineReply {
    /// Whether the request has written to its slot, which confirms what the slot had before.
    fileprivate var hasWritten: Bool {
        switch self {
        case .granted, .queued, .done, .settled: true
        case .none, .over, .conflict, .missing, .gone, .broken, .known, .lost, .stale, .occupied, .family, .again,
            .heartbeat, .page, .sweep, .values:
            false
        }
    }

    /// Whether the request has had no effect, and its slot does not show that it has arrived.
    fileprivate var isRefusal: Bool {
        switch self {
        case .none, .conflict, .missing, .gone, .broken, .known: true
        default: false
        }
    }
}
