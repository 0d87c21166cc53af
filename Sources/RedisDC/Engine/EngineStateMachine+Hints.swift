// What arrives on the wake-up channel, and the comparison with Redis after a gap: hints make it fast, the comparison makes
// it right.

extension EngineStateMachine {
    enum HintAction: SendingAction, FinishingAction {
        case sessionEnded([SessionEndAction])
        case send(EngineRequest)
        case finish(ID, Finish)
        /// The lease is not held any more.
        case lose(ID, RedisDCError)
    }

    /// A message on the channel: pairs of a claim's number and its fence, or a word.
    mutating func hint(_ id: String, _ text: String, now: Duration) -> [HintAction] {
        if isExpired(at: now) { return [.sessionEnded(endSession(.expired, now))] }
        guard isLive, id == life.id else { return [] }
        var actions: [HintAction] = []
        let words = text.split(separator: " ")
        for index in stride(from: 0, to: words.count - 1, by: 2) {
            guard let number = UInt64(words[index]) else { continue }
            let word = words[index + 1]
            let parts = word.split(separator: "/")
            if let fence = parts.first.flatMap({ UInt64($0) }) {
                live.grants += 1
                actions += grantSeen(number, fence, parts.count == 2 ? UInt64(parts[1]) ?? 0 : 0, now)
            } else if let claimID = live.claimIDs[number], let claim = claims[claimID] {
                actions += wordSeen(claimID, claim, word)
            }
        }
        return actions
    }

    /// Redis has granted the claim with this number, to this process or to an earlier caller.
    private mutating func grantSeen<Action: SendingAction & FinishingAction>(
        _ number: UInt64, _ fence: UInt64, _ value: UInt64, _ now: Duration
    ) -> [Action] {
        guard let id = live.claimIDs[number], let claim = claims[id] else { return [] }
        switch claim.state {
        case .requested, .queued: return granted(id, number, fence, value, now)
        case .idle, .abandoned, .held, .releasing: return []
        }
    }

    private mutating func wordSeen(_ id: ID, _ claim: Claim, _ word: Substring) -> [HintAction] {
        let resource = claim.request.resource
        let isHeld: Bool
        switch claim.state {
        case .requested, .queued: isHeld = false
        case .held: isHeld = true
        case .idle, .abandoned, .releasing: return []
        }
        switch (word, isHeld) {
        case ("gone", false):
            forget(id)
            return [.finish(id, .failure(RedisDCError(.destroyed, "\(resource) was destroyed")))]
        case ("broken", false):
            forget(id)
            let error = RedisDCError(.broken, "\(resource) is broken, because a party died or gave up")
            return [.finish(id, .failure(error))]
        case ("try", false):
            return [.send(send(.give(name: resource.name), .background))]
        case ("lost", _):
            forget(id)
            let error = RedisDCError(.lost, "\(resource) was taken away by an operator")
            // For a waiter, the hint of the grant comes later or never. The wait has ended either way.
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

    /// Hints may have been missed.
    mutating func gap(_ id: String, now: Duration) -> GapAction {
        if isExpired(at: now) { return .sessionEnded(endSession(.expired, now)) }
        guard isLive, id == life.id else { return .none }
        return reconcile().map { .send($0) } ?? .none
    }

    /// Asks Redis what the session holds and waits for, if that is not being asked already. There must be a session.
    mutating func reconcile() -> EngineRequest? {
        guard case .none = live.reconciliation else {
            live.reconciliation = .running(again: true)
            return nil
        }
        live.reconciliation = .running(again: false)
        let known = claims.values.compactMap { claim -> UInt64? in
            switch claim.state {
            case .queued(let number), .held(let number, _): number
            case .idle, .requested, .abandoned, .releasing: nil
            }
        }
        return send(.reconcile(after: ""), .reconcile(known: Set(known), found: []))
    }

    /// - Parameters:
    ///   - known: the numbers of the claims that were queued or held when Redis was asked.
    ///   - before: the lines of the earlier pages.
    mutating func reconcileAnswered(
        _ known: Set<UInt64>, _ before: [EngineReply.Line], _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        guard case .page(let next, let lines) = reply else {
            live.reconciliation = .none
            return []
        }
        let found = before + lines
        guard next.isEmpty else {
            return [.send(send(.reconcile(after: next), .reconcile(known: known, found: found)))]
        }
        var actions = claimsFound(found, now)
        let missing = known.subtracting(found.map(\.number))
        for number in missing.sorted() { actions += claimMissing(number, now) }
        if !missing.isEmpty { actions.append(.event(.dataLost)) }
        if case .running(again: true) = live.reconciliation {
            live.reconciliation = .none
            if let request = reconcile() { actions.append(.send(request)) }
        } else {
            live.reconciliation = .none
        }
        return actions
    }

    private mutating func claimsFound(_ found: [EngineReply.Line], _ now: Duration) -> [ReplyAction] {
        let confirming = Set(live.pending.values.flatMap(\.request.acknowledged))
        var actions: [ReplyAction] = []
        for line in found {
            if live.claimIDs[line.number] == nil {
                // Granted to a request that nobody waits for any more, unless its receipt is being confirmed.
                let isUnknown =
                    live.pending[line.number] == nil && !confirming.contains(line.number)
                    && !live.confirmations.contains(line.number)
                if isUnknown { actions.append(.send(send(.release(name: line.name, claim: line.number), .background))) }
            } else if line.state != .waiting {
                actions += grantSeen(line.number, line.fence, line.count, now)
            }
        }
        return actions
    }

    private mutating func claimMissing(_ number: UInt64, _ now: Duration) -> [ReplyAction] {
        guard let id = live.claimIDs[number], let claim = claims[id] else { return [] }
        switch claim.state {
        case .held:
            forget(id)
            let resource = claim.request.resource
            let error = RedisDCError(.lost, "Redis has lost the record that \(resource) was held")
            // If only the claim's line in the index is gone, nothing else would give its permits back.
            return [
                .lose(id, error), .send(send(.release(name: resource.name, claim: number), .background)),
            ]
        case .queued:
            // Redis has lost the place in the queue.
            live.claimIDs[number] = nil
            claims[id]!.state = .idle
            return begin(id, now).map { [.send($0)] } ?? []
        case .idle, .requested, .abandoned, .releasing: return []
        }
    }
}
