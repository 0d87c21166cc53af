// Final replies of Redis, and their effect on claims, calls and leases.

extension EngineStateMachine {
    /// Handles the reply to a request, by the request's purpose.
    mutating func answered(_ entry: Session.Pending, _ reply: EngineReply, _ now: Duration) -> [ReplyAction] {
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
            var actions: [ReplyAction] = [.finish(id, result(of: operation, reply))]
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
            return [.finish(id, result(of: .claim(claim.request), reply))]
        }
    }

    /// Handles the grant of a claim by a reply, a wake-up or a reconciliation.
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

    // MARK: Results

    private func result(of operation: Operation, _ reply: EngineReply) -> Finish {
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
