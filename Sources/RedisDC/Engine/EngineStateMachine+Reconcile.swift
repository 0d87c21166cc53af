// What comes from Redis unasked, and what there is when it is asked: hints make it fast, the comparison makes it right.

extension EngineStateMachine {
    /// Pairs of a claim's number and its fence, or a word.
    mutating func hint(_ id: String, _ text: String, now: Duration) -> [Action] {
        var actions = expire(now)
        guard id == session.id, phase == .live else { return actions }
        let words = text.split(separator: " ")
        for index in stride(from: 0, to: words.count - 1, by: 2) {
            guard let number = UInt64(words[index]) else { continue }
            let word = words[index + 1]
            let parts = word.split(separator: "/")
            if let fence = parts.first.flatMap({ UInt64($0) }) {
                grants += 1
                actions += granted(number, fence, parts.count == 2 ? UInt64(parts[1]) ?? 0 : 0, now)
            } else if let claimID = claimOf[number], let claim = claims[claimID] {
                actions += told(claimID, claim, word)
            }
        }
        return actions
    }

    private mutating func granted(_ number: UInt64, _ fence: UInt64, _ value: UInt64, _ now: Duration) -> [Action] {
        guard let id = claimOf[number], let claim = claims[id] else { return [] }
        switch claim.state {
        case .asked, .queued: return granted(id, number, fence, value, now)
        case .idle, .leaving, .held, .releasing: return []
        }
    }

    mutating func told(_ id: ID, _ claim: Claim, _ word: Substring) -> [Action] {
        switch (word, claim.state) {
        case ("gone", .asked), ("gone", .queued):
            return drop(id, RedisDCError(.destroyed, "\"\(claim.request.resource.name)\" has been destroyed"))
        case ("broken", .asked), ("broken", .queued):
            return drop(
                id,
                RedisDCError(
                    .broken, "\"\(claim.request.resource.name)\" is broken: one who took part has died or given up"))
        case ("try", .asked), ("try", .queued): return [send(.give(name: claim.request.resource.name), .background)]
        case ("lost", .held):
            forget(id)
            return [.lose(id, RedisDCError(.lost, "\"\(claim.request.resource.name)\" was taken away by an operator"))]
        case ("lost", .asked), ("lost", .queued):
            // The news of the grant comes later, or never: it is over all the same.
            return drop(id, RedisDCError(.lost, "\"\(claim.request.resource.name)\" was taken away by an operator"))
        default: return []
        }
    }

    // MARK: Reconcile

    /// Hints may have been missed: Redis is asked what there is.
    mutating func gap(_ id: String, now: Duration) -> [Action] {
        guard id == session.id, phase == .live else { return [] }
        return expire(now) + reconcile()
    }

    mutating func reconcile() -> [Action] {
        guard phase == .live else { return [] }
        if isReconciling {
            reconcilesAgain = true
            return []
        }
        isReconciling = true
        let known = claims.values.compactMap { claim -> UInt64? in
            switch claim.state {
            case .queued(let number), .held(let number, _): number
            case .idle, .asked, .leaving, .releasing: nil
            }
        }
        return [send(.reconcile(after: ""), .reconcile(known: Set(known), found: []))]
    }

    mutating func reconciled(
        _ known: Set<UInt64>, _ before: [EngineReply.Line], _ reply: EngineReply, _ now: Duration
    ) -> [Action] {
        guard case .page(let next, let lines) = reply else {
            isReconciling = false
            return []
        }
        let found = before + lines
        guard next.isEmpty else {
            return [send(.reconcile(after: next), .reconcile(known: known, found: found))]
        }
        isReconciling = false
        var actions: [Action] = []
        let confirming = Set(acknowledgements).union(pending.values.flatMap(\.request.acknowledged))
        for line in found {
            if claimOf[line.number] == nil {
                // Given to a request that nobody waits for any more, unless its receipt is being confirmed.
                if pending[line.number] == nil, !confirming.contains(line.number) {
                    actions.append(send(.release(name: line.name, claim: line.number), .background))
                }
            } else if line.state == "h" || line.state == "g" {
                actions += granted(line.number, line.fence, line.count, now)
            }
        }
        let missing = known.subtracting(found.map(\.number))
        for number in missing.sorted() {
            guard let id = claimOf[number], let claim = claims[id] else { continue }
            switch claim.state {
            case .held:
                forget(id)
                let error = RedisDCError(.lost, "Redis has lost that \"\(claim.request.resource.name)\" was held")
                actions.append(.lose(id, error))
                // If only its line is gone, nobody would find its permits again.
                actions.append(send(.release(name: claim.request.resource.name, claim: number), .background))
            case .queued:
                // Redis has lost the place in the queue.
                claimOf[number] = nil
                actions += begin(id, now)
            case .idle, .asked, .leaving, .releasing: break
            }
        }
        if !missing.isEmpty { actions.append(.event(.dataLost)) }
        if reconcilesAgain {
            reconcilesAgain = false
            actions += reconcile()
        }
        return actions
    }
}
