// Final failures of requests, and their effect on claims, calls and leases.

extension EngineStateMachine {
    /// Handles the final failure of a request, by the request's purpose.
    mutating func failed(_ entry: Session.Pending, _ error: RedisDCError, _ now: Duration) -> [ReplyAction] {
        switch entry.purpose {
        case .claim(let id):
            // A message may have granted it before.
            guard isRequested(id, entry.request.number) else {
                freeSlot(of: entry)
                return []
            }
            // A claim that may exist keeps its slot.
            if let slot = entry.request.slot {
                live.slots.refuse(slot, entry.request.number, now, until: now + settings.repairTime)
            }
            if error.mayHaveRun { forget(id) } else { forgetEnded(id) }
            return [.finish(id, .failure(error))]
        case .end(let id): return ownEndFailed(id, error) + afterLeaving(entry.request, now)
        case .call(let id):
            var error = error
            if calls[id]?.mayHaveRun == true { error.mayHaveRun = true }
            calls[id] = nil
            switch entry.request.operation.once {
            case .slot: if let slot = entry.request.slot { live.slots.give(slot) }
            case .claim(let number, isEnded: true): restoreHeld(number)
            case .claim, .idempotent: break
            }
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
        case .repetition:
            repetitionFailed(entry.request)
            return []
        case .repair(let end): return repairAnswered(entry.request, until: end, nil, now)
        case .endExpired(let claim, let name) where error.code == .serverError: return endFailed(claim, name)
        case .givenUp, .sweep, .confirm, .listSessions, .endExpired, .setAside, .background:
            freeSlot(of: entry)
            return waitsRefused(error, now)
        }
    }

    /// Handles the failure of a request that ends a claim. The server ends it when the session ends.
    private mutating func ownEndFailed(_ id: ID, _ error: RedisDCError) -> [ReplyAction] {
        guard let claim = forget(id) else { return [] }
        switch claim.state {
        case .abandoned(_, let reason): return [.finish(id, .failure(reason))]
        case .releasing(_, _, let releaser): return releaser.map { [.finish($0, .failure(error))] } ?? []
        case .idle, .requested, .queued, .held: return []
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
        return [.send(makeRequest(SetAside(claim: claim, name: name), .setAside(claim, name: name)))]
    }

    /// Restores the lease of a transfer that failed: it is still held.
    mutating func restoreHeld(_ number: UInt64) {
        guard let id = live.claimIDs[number], case .releasing(_, let fence, _)? = claims[id]?.state else { return }
        claims[id]!.state = .held(number, fence: fence)
    }
}
