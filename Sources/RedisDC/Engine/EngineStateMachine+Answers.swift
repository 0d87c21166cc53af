// Final replies of Redis, and their effect on claims, calls and leases.

extension EngineStateMachine {
    /// Handles the reply to a request, by the request's purpose.
    mutating func answered(_ entry: Session.Pending, _ reply: EngineReply, _ now: Duration) -> [ReplyAction] {
        let operation = entry.request.operation
        if entry.refusal != nil, let settle = operation as? Settle { return settled(entry, settle.refused, reply, now) }
        switch entry.purpose {
        case .claim(let id): return claimAnswered(id, entry, reply, now)
        case .givenUp(let end): return givenUpAnswered(entry, reply, end)
        case .end(let id):
            return endAnswered(id, entry, reply, now) + afterLeaving(entry.request, now)
                + requestForWaiters(operation, reply)
        case .call(let id): return callAnswered(id, entry.request, reply)
        case .heartbeat(let sent, let notices): return heartbeatAnswered(sent, notices: notices, reply, now)
        case .reconcile(let known, let found): return reconcileAnswered(known, found, reply, now)
        case .confirm: return []
        case .listSessions:
            guard case .done(let cursor, _) = reply, cursor > 0 else { return [] }
            return [.send(makeRequest(ListSessions(cursor: cursor), .listSessions))]
        case .sweep(let session, let hasClaims, let isSecond):
            return sweepAnswered(session, reply, hasClaims, isSecond)
        case .setAside(let claim, let name):
            guard case .done(count: 1, _) = reply else { return [] }
            return [.event(.claimSetAside(id: claim.description, resource: name))]
        case .endExpired: return requestForWaiters(operation, reply)
        case .repetition:
            repeated(entry.request, reply)
            return requestForWaiters(operation, reply)
        case .repair(let end):
            return repairAnswered(entry.request, until: end, reply, now) + requestForWaiters(operation, reply)
        case .background:
            freeSlot(of: entry)
            let ends = if case .done = reply { claimEnded(entry, reply) } else { [ReplyAction]() }
            return ends + requestForWaiters(operation, reply)
        }
    }

    // MARK: Claims that were given up

    /// Handles the reply to a request for a claim that the process has given up. If it has made the claim, and its end has
    /// been answered, the end came too early: Redis has lost it, or could not record it in a slot with an older claim whose
    /// end it had lost. So the claim is ended again.
    private mutating func givenUpAnswered(
        _ entry: Session.Pending, _ reply: EngineReply, _ end: UInt64
    ) -> [ReplyAction] {
        let request = entry.request
        switch reply {
        case .granted, .queued: break
        default:
            freeSlot(of: entry)
            return []
        }
        if live.pending[end] != nil {
            live.pending[end]!.endsClaim = true
            return []
        }
        guard let slot = request.slot, let acquire = request.operation as? Acquire else { return [] }
        let again = endAgain(
            slot, request.number, acquire.name, request.family ?? acquire.family, freesSlot: entry.freesSlot)
        return [.send(again)]
    }

    /// Records that the end of a claim was answered, which frees its slot. If it has not found a claim that was made, the
    /// claim is ended again before.
    private mutating func claimEnded(_ entry: Session.Pending, _ reply: EngineReply) -> [ReplyAction] {
        guard let slot = entry.request.slot, let release = entry.request.release else { return [] }
        guard entry.endsClaim, case .done(count: 0, _) = reply else {
            free(slot, of: release.claim)
            return []
        }
        return [.send(endAgain(slot, release.claim, release.name, release.family, freesSlot: true))]
    }

    private mutating func endAgain(
        _ slot: Int, _ number: UInt64, _ name: String, _ family: Family, freesSlot: Bool
    ) -> EngineRequest {
        let claim = ClaimID(session: life.id, slot: slot, number: number)
        let request = makeRequest(End(claim, name: name, family, isForced: true), slot: slot)
        live.pending[request.number]!.freesSlot = freesSlot
        return request
    }

    /// Frees the slot of a request that is answered, if nothing else is to free it.
    mutating func freeSlot(of entry: Session.Pending) {
        if entry.freesSlot, let slot = entry.request.slot { live.slots.give(slot) }
    }

    /// Lets the claim end that the repetition of a request may make on a new master: nobody waits for it any more. A first reply
    /// is one that a message has overtaken.
    mutating func giveUp(_ number: UInt64) {
        if live.pending[number]?.failures ?? 0 > 0 { live.pending[number]!.purpose = .givenUp(end: 0) }
    }

    /// Handles the reply to a request whose claim a wake-up has granted before. If it is a repetition that queues, a new
    /// master may have lost a grant that was consumed, and has a waiter that nobody waits for: the comparison ends it. On the
    /// same master, this is the reply that the wake-up has overtaken, and an end would return what was received.
    private mutating func queuedAfterGrant(
        _ id: ID, _ entry: Session.Pending, _ reply: EngineReply
    ) -> [ReplyAction] {
        guard claims[id] == nil, entry.failures > 0, case .queued = reply, let request = reconcile() else { return [] }
        return [.send(request)]
    }

    // MARK: Ends of arrivals

    /// Whether the end of an arrival at a phaser or barrier has not been answered: until then it may count.
    func isLeaving(_ name: String) -> Bool { live.leaving.values.contains(name) }

    /// Handles the end of an arrival, and returns what had to wait for it: the release of a registration, without which the
    /// arrival would count in place of another party, and the next arrival, which may be that of the same party.
    mutating func afterLeaving(_ request: EngineRequest, _ now: Duration) -> [ReplyAction] {
        guard let name = live.leaving.removeValue(forKey: request.number), !isLeaving(name) else { return [] }
        let waiting = live.afterLeaving
        live.afterLeaving = waiting.filter { claims[$0].map { $0.request.name != name } ?? false }
        return waiting.compactMap { id in
            guard let claim = claims[id], claim.request.name == name else { return nil }
            switch claim.state {
            case .releasing(let number, _, _):
                return .send(makeEnd(claim.release(number), of: number, .end(id), slot: claim.slot))
            case .idle: return begin(id, now).map { .send($0) }
            case .requested, .queued, .abandoned, .held: return nil
            }
        }
    }

    // MARK: Replies by purpose

    private mutating func callAnswered(_ id: ID, _ request: EngineRequest, _ reply: EngineReply) -> [ReplyAction] {
        calls[id] = nil
        var actions: [ReplyAction] = [.finish(id, result(of: request.operation, reply))]
        switch (request.operation.once, reply) {
        case (.slot, _): if let slot = request.slot { live.slots.give(slot) }
        case (.claim(let number, isEnded: true), .done): live.claimIDs[number].map { forgetEnded($0) }
        case (.claim(let number, isEnded: true), _): restoreHeld(number)
        // Redis does not have the lease.
        case (.claim, .none): if let request = reconcile() { actions.append(.send(request)) }
        case (.claim(let number, isEnded: false), .values):
            if let held = live.claimIDs[number], claims[held]?.request.resource.kind == .bufferItems {
                claims[held]!.hasItem = true
            }
        case (.claim, _), (.idempotent, _): break
        }
        return actions + requestForWaiters(request.operation, reply)
    }

    private mutating func claimAnswered(
        _ id: ID, _ entry: Session.Pending, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        let number = entry.request.number
        guard let claim = claims[id], case .requested(number) = claim.state else {
            freeSlot(of: entry)
            return queuedAfterGrant(id, entry, reply)
        }
        switch reply {
        case .granted(let fence, let arrival): return granted(id, number, fence, arrival, now)
        case .queued(let more):
            claims[id]!.state = .queued(number)
            var actions: [ReplyAction] = []
            if let request = releaseOfReplacedClaim(for: id) { actions.append(.send(request)) }
            if more {
                actions.append(.send(makeRequest(Recheck(name: claim.request.resource.name))))
            }
            return actions
        case _ where Self.isOwn(id): return consumptionRefused(id, now)
        case .none:
            forgetEnded(id)
            return [.finish(id, .success(.notAvailable(claim.request)))]
        default:
            forgetEnded(id)
            return [.finish(id, result(of: claim.request, reply))]
        }
    }

    /// Handles the grant of a claim by a reply, a wake-up or a reconciliation.
    mutating func granted<Action: SendingAction & FinishingAction>(
        _ id: ID, _ number: UInt64, _ fence: UInt64, _ arrival: UInt64, _ now: Duration
    ) -> [Action] {
        var actions: [Action] = []
        if claims[id]!.request.remedy != .none, let slot = claims[id]!.slot {
            effects.append(
                EngineRequest(session: life.id, number: number, slot: slot, operation: claims[id]!.request), at: now)
        }
        if let request = releaseOfReplacedClaim(for: id) { actions.append(.send(request)) }
        let isLease = claims[id]!.request.mode != .consume
        let grant = Grant(
            claim: id, fence: fence, arrival: arrival, life: life, watch: isLease ? LeaseWatch() : nil)
        if !live.channel.isSubscribed { claims[id]!.request.cohort?.recall(.unknown) }
        if isLease {
            highestFence = max(highestFence, fence)
            claims[id]!.state = .held(number, fence: fence)
        } else if let slot = forget(id)?.slot {
            free(slot, of: number)
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
        if case .granted(let fence, let arrival) = reply, let leave = request.operation as? Leave {
            // The claim was granted before it could leave. If the caller no longer waits, it is released.
            guard case .abandoned? = claims[id]?.state else {
                let release = Release(leave.target, claim: leave.claim, .meetings)
                return [.send(makeEnd(release, of: leave.claim, slot: request.slot))]
            }
            if live.pending[leave.claim] != nil { live.pending[leave.claim]!.purpose = .claim(id) }
            return granted(id, leave.claim, fence, arrival, now)
        }
        let ends = claimEnded(entry, reply)
        guard let claim = claims[id] else { return ends }
        switch claim.state {
        case .abandoned(_, let error):
            forget(id)
            // Others have been granted permits that this process had consumed.
            return [Self.isOwn(id) ? .event(.dataLost) : .finish(id, .failure(error))] + ends
        case .releasing(_, _, let releaser):
            let error = notHeld(id)
            forget(id)
            // A repeated release finds no claim if an earlier attempt has succeeded. If none of them can have run, the lease
            // was already gone: an operator has released it, or Redis has lost it.
            let isTooLate = if case .done(count: 0, _) = reply { !entry.mayComeLate } else { false }
            return (releaser.map { [.finish($0, isTooLate ? .failure(error) : .success(.released))] } ?? []) + ends
        case .idle, .requested, .queued, .held: return ends
        }
    }

    /// Requests the next grants when the script has left waiters over: one script handles a limited number.
    private mutating func requestForWaiters(
        _ operation: any EngineOperation, _ reply: EngineReply
    ) -> [ReplyAction] {
        guard case .done(_, let more) = reply, more else { return [] }
        return [.send(makeRequest(Recheck(name: operation.name)))]
    }

    /// Ends the claims of an expired session that the reply lists, and asks for the next ones. When all have been listed
    /// and there were any, a second pass deletes the session. What it finds again is left to the next heartbeat that lists
    /// the session, a second later.
    private mutating func sweepAnswered(
        _ session: String, _ reply: EngineReply, _ hasClaims: Bool, _ isSecond: Bool
    ) -> [ReplyAction] {
        guard case .sweep(let below, let claims) = reply else { return [] }
        if isSecond, !claims.isEmpty { return [] }
        var actions: [ReplyAction] = claims.map { claim in
            let end = End(claim.id, name: claim.name, claim.family, isForced: false)
            return .send(makeRequest(end, .endExpired(claim.id, name: claim.name)))
        }
        let hasClaims = hasClaims || !claims.isEmpty
        if below > 0 {
            actions.append(.send(sweep(session, below: below, hasClaims: hasClaims, isSecond: isSecond)))
        } else if hasClaims {
            actions.append(.send(sweep(session, hasClaims: false, isSecond: true)))
        }
        return actions
    }

    /// Returns the request that sweeps an expired session: see ``Session/Purpose/sweep(_:hasClaims:isSecond:)``.
    mutating func sweep(
        _ session: String, below: Int? = nil, hasClaims: Bool, isSecond: Bool
    ) -> EngineRequest {
        makeRequest(
            Sweep(session: session, below: below), .sweep(session, hasClaims: hasClaims, isSecond: isSecond))
    }

    // MARK: Results

    private func result(of operation: any EngineOperation, _ reply: EngineReply) -> Finish {
        let name = operation.name
        switch reply {
        case .done, .values, .granted, .known: return .success(.answered(reply))
        case .none: return .failure(RedisDCError(.lost, "\"\(name)\" is no longer held"))
        case .conflict(let letters, let permits):
            let found = ResourceKind(letters: letters)
                .described(permits: permits, policy: letters.unicodeScalars.last)
            let wanted = operation.describedResource.map { "; this call expects \($0.configuration)" } ?? ""
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
