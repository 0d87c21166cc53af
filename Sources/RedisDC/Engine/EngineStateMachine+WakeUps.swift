// Wake-ups, the messages on the session's channel, and the comparison with Redis (reconciliation). Wake-ups make grants
// fast; the comparison finds those whose wake-ups were lost.

extension EngineStateMachine {
    enum WakeUpAction: ClaimAction {
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
        case finish(ID, Finish)
        /// The lease is lost.
        case lose(ID, RedisDCError)
        /// Another process waits for the mutex that this process's cohort holds.
        case recall(CohortClaim)
    }

    /// Handles a message on the wake-up channel: the session's notices, then pairs of a claim's number and a fence, or of
    /// a number and a word; or `look` alone.
    mutating func wakeUpReceived(_ id: String, _ text: String, now: Duration) -> [WakeUpAction] {
        if isExpired(at: now) { return [.sessionEnded(endSession(.expired, now))] }
        guard isLive, id == life.id else { return [] }
        if text == "look" {
            looksNow(now)
            return []
        }
        let words = text.split(separator: " ")
        let counted = stride(from: 2, to: words.count, by: 2).count { words[$0] != "try" && words[$0] != "recall" }
        let conclusion = live.notices.receive(counted, upTo: words.first.flatMap { UInt64($0) } ?? .max)
        var actions: [WakeUpAction] = []
        if conclusion != .complete, let request = reconcile() { actions.append(.send(request)) }
        if conclusion == .foreign { return actions }
        for index in stride(from: 1, to: words.count - 1, by: 2) {
            guard let number = UInt64(words[index]) else { continue }
            let word = words[index + 1]
            let parts = word.split(separator: "/")
            if let fence = parts.first.flatMap({ UInt64($0) }) {
                actions += grantSeen(number, fence, parts.count == 2 ? UInt64(parts[1]) ?? 0 : 0, now)
            } else if let claimID = live.claimIDs[number], let claim = claims[claimID] {
                if word == "recall" {
                    // It may overtake the reply with the grant.
                    if let cohort = claim.request.cohort { actions.append(.recall(cohort)) }
                } else {
                    actions += wordSeen(claimID, claim, word)
                }
            }
        }
        return actions
    }

    /// Handles the grant of the claim with this number. Ignores it when the claim is unknown or no longer waits.
    private mutating func grantSeen<Action: SendingAction & FinishingAction>(
        _ number: UInt64, _ fence: UInt64, _ arrival: UInt64, _ now: Duration
    ) -> [Action] {
        guard let id = live.claimIDs[number], let claim = claims[id] else { return [] }
        switch claim.state {
        case .requested, .queued: return granted(id, number, fence, arrival, now)
        case .idle, .abandoned, .held, .releasing: return []
        }
    }

    /// Handles a word about a claim: `gone`, `broken`, `try` or `lost`.
    private mutating func wordSeen<Action: ClaimAction>(_ id: ID, _ claim: Claim, _ word: Substring) -> [Action] {
        let isHeld: Bool
        switch claim.state {
        case .requested, .queued: isHeld = false
        case .held: isHeld = true
        case .idle, .abandoned, .releasing: return []
        }
        let resource = claim.request.resource
        switch (word, isHeld) {
        case ("gone", false):
            forgetEnded(id)
            return [.finish(id, .failure(RedisDCError(.destroyed, "\(resource) was destroyed")))]
        case ("broken", false):
            forgetEnded(id)
            let error = RedisDCError(.broken, "\(resource) is broken, because a party died or gave up")
            return [.finish(id, .failure(error))]
        case ("try", false):
            return [.send(makeRequest(Recheck(name: resource.name)))]
        case ("lost", _):
            forgetEnded(id)
            let error = RedisDCError(.lost, "\(resource) was taken away by an operator")
            // A waiter receives this word if its grant's wake-up is late or lost. Its wait has ended too.
            return isHeld ? [.lose(id, error)] : [.finish(id, .failure(error))]
        default: return []
        }
    }

    // MARK: Gaps

    enum GapAction {
        case none
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
    }

    /// Handles a gap: messages on the wake-up channel may have been lost.
    mutating func gap(_ id: String, now: Duration) -> GapAction {
        if isExpired(at: now) { return .sessionEnded(endSession(.expired, now)) }
        guard isLive, id == life.id else { return .none }
        return reconcile().map { .send($0) } ?? .none
    }

    /// Requests the list of the session's claims, or returns `nil` when a list is being read already; then another one
    /// is requested afterwards.
    ///
    /// - Precondition: the phase is `.live`.
    mutating func reconcile() -> EngineRequest? {
        guard case .none = live.reconciliation else {
            live.reconciliation = .running(again: true)
            return nil
        }
        live.reconciliation = .running(again: false)
        var known: [UInt64: Session.KnownClaim] = [:]
        for number in unconfirmed() { known[number] = .consumed }
        for claim in claims.values {
            switch claim.state {
            case .queued(let number): known[number] = .queued
            case .held(let number, let fence): known[number] = .held(fence: fence, hasItem: claim.hasItem)
            case .idle, .requested, .abandoned, .releasing: break
            }
        }
        let list = ListClaims(session: life.id, from: 0, listsAll: live.comparison != nil)
        return makeRequest(list, .reconcile(known: known, found: []))
    }

    /// Handles a page of the list of claims, and compares the claims with it after the last page.
    ///
    /// - Parameters:
    ///   - known: the claims by number, as they were when the first page was requested.
    ///   - before: the lines of the earlier pages.
    mutating func reconcileAnswered(
        _ known: [UInt64: Session.KnownClaim], _ before: [EngineReply.Line], _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        guard case .page(let next, let lines) = reply else {
            live.reconciliation = .none
            return []
        }
        for line in lines { live.comparison?.listed(line) }
        let found = before + lines.filter(\.isOfClaim)
        guard next == 0 else {
            let nextPage = ListClaims(session: life.id, from: next, listsAll: live.comparison != nil)
            return [.send(makeRequest(nextPage, .reconcile(known: known, found: found)))]
        }
        var actions: [ReplyAction] = []
        // Leases and consumed permits that Redis has as waiters, or with another fence, are not those that it once granted. A
        // lease without the item that the process has will take another one, and others can take this one.
        func isReplaced(_ line: EngineReply.Line) -> Bool {
            switch known[line.number] {
            case .held(let fence, let hasItem):
                line.state == .waiting
                    || line.state == .held && (line.fence != fence || hasItem && line.family != .item)
            case .consumed: line.state == .waiting
            case .queued, nil: false
            }
        }
        let others = takeOver(found)
        let replaced = others.filter(isReplaced)
        for line in replaced { actions += grantReplaced(line) }
        actions += claimsFound(replaced.isEmpty ? others : others.filter { !isReplaced($0) }, now)
        let missing = Set(known.keys).subtracting(found.map(\.number))
        var isLost = !replaced.isEmpty
        for number in missing.sorted() {
            // Nothing if the claim has ended since: a list that is read again on a new connection need not have it.
            let consequences = claimMissing(number, now)
            isLost = isLost || !consequences.isEmpty
            actions += consequences
        }
        if live.comparison != nil {
            live.comparison!.found(isLost: isLost, actions)
        } else if isLost {
            actions.append(.event(.dataLost))
        }
        if case .running(again: true) = live.reconciliation {
            live.reconciliation = .none
            if let request = reconcile() { actions.append(.send(request)) }
        } else {
            live.reconciliation = .none
        }
        return actions
    }

    /// Handles the claims that Redis has listed: accepts grants, and releases claims that no caller waits for.
    private mutating func claimsFound(_ found: [EngineReply.Line], _ now: Duration) -> [ReplyAction] {
        // Consumed permits whose confirmation Redis has lost. They are confirmed again.
        var lost: [Slots.Confirmation] = []
        let confirming = unconfirmed()
        var actions: [ReplyAction] = []
        for line in found {
            guard let id = live.claimIDs[line.number] else {
                // A claim whose caller no longer waits, unless it is being requested or its consumption is being
                // confirmed.
                guard line.isClaim, live.pending[line.number] == nil, !confirming.contains(line.number) else {
                    continue
                }
                if line.state == .granted, !live.slots.isRefused(line.slot, line.number) {
                    lost.append(Slots.Confirmation(slot: line.slot, number: line.number))
                } else {
                    actions.append(.send(end(line)))
                }
                continue
            }
            switch line.state {
            case .waiting: break
            case .granted, .held: actions += grantSeen(line.number, line.fence, line.count, now)
            case .ended(let word): if let claim = claims[id] { actions += wordSeen(id, claim, word[...]) }
            }
        }
        for start in stride(from: 0, to: lost.count, by: Self.maxConfirmations) {
            let share = Array(lost[start..<min(start + Self.maxConfirmations, lost.count)])
            actions.append(.send(confirm(share)))
        }
        return actions
    }

    /// The numbers of consumed permits whose confirmation is not sent, in flight, or carried by a request in the same slot.
    private func unconfirmed() -> Set<UInt64> {
        var numbers = Set(live.slots.unconfirmed.values)
        for entry in live.pending.values {
            if let number = entry.confirms { numbers.insert(number) }
            numbers.formUnion(entry.purpose.confirmed.map(\.number))
        }
        return numbers
    }

    /// Ends a claim that Redis has, and that no caller wants.
    mutating func end(_ line: EngineReply.Line) -> EngineRequest {
        let claim = ClaimID(session: life.id, slot: line.slot, number: line.number)
        return makeRequest(End(claim, name: line.name, line.family, isForced: true))
    }

    /// Handles the loss of a grant in Redis: others may have held the resource since. The lease ends, and so does the
    /// claim that Redis has in its place. Consumed permits stay consumed, but a claim that still waits for them ends:
    /// no caller would receive its grant.
    private mutating func grantReplaced(_ line: EngineReply.Line) -> [ReplyAction] {
        let number = line.number
        guard let id = live.claimIDs[number], let claim = claims[id], case .held = claim.state else {
            return line.state == .waiting && live.claimIDs[number] == nil ? [.send(end(line))] : []
        }
        forget(id)
        let error = RedisDCError(
            .lost,
            "Redis has lost \(claim.hasItem ? "the item" : "the grant") of \(claim.request.resource), "
                + "as after a failover that lost the last writes")
        return [.lose(id, error), .send(makeEnd(claim.release(number), of: number, slot: claim.slot))]
    }

    /// Handles a claim that Redis has not listed: a lease is lost, a waiter is requested again.
    private mutating func claimMissing(_ number: UInt64, _ now: Duration) -> [ReplyAction] {
        guard let id = live.claimIDs[number], let claim = claims[id] else { return [] }
        switch claim.state {
        case .held:
            forget(id)
            let error = RedisDCError(.lost, "Redis has lost the record of the lease of \(claim.request.resource)")
            // Frees the slot.
            return [.lose(id, error), .send(makeEnd(claim.release(number), of: number, slot: claim.slot))]
        case .queued:
            // Redis has lost the place in the queue. What is left of the claim ends, which frees its slot.
            let end = makeEnd(claim.release(number), of: number, slot: claim.slot)
            if settings.failsWaitersOnLoss || claim.request.failsOnLoss {
                forget(id)
                let error = RedisDCError(
                    .lost, "cannot \(claim.request.purpose): Redis has lost its place in the queue")
                return [.finish(id, .failure(error)), .send(end)]
            }
            live.claimIDs[number] = nil
            claims[id]!.state = .idle
            claims[id]!.slot = nil
            return [.send(end)] + (begin(id, now).map { [.send($0)] } ?? [])
        case .idle, .requested, .abandoned, .releasing: return []
        }
    }
}
