// After a failover: compares what the process knows with what the new server has, and does again what is lost there.
//
// Replication is asynchronous, so a promoted replica may lack the last writes. A new connection carries only the requests
// of this comparison until it has ended: a later request in a slot would hide that an earlier one is lost. The heartbeat
// says whether anything is lost, and the list of the session's slots says what. A lost request is repeated in its slot under
// its number, so that it takes effect once, however often the process or the server changes its mind. Permits that were
// consumed are consumed again, ahead of all others. Leases are lost: others may have held the resource since.
import DequeModule

extension EngineStateMachine {
    /// The comparison with the server of a new connection.
    struct Comparison {
        enum Step {
            case compare, consume, `repeat`, end
        }

        /// What the server has not got, and what the process does about it.
        struct Consumption {
            var request: Acquire
            /// The claim that waits for the permits on the server.
            var waiting: EngineReply.Line?
        }

        /// The requests that must be answered before the next step.
        var awaited: Set<UInt64> = []
        /// The number of effects when it began. A later one may be a grant on the new server, after the list of claims.
        var effectCount: UInt64
        var step = Step.compare
        /// Whether the list of claims is complete.
        var isListed = false
        /// The last request in each slot.
        var lastNumbers: [Int: UInt64] = [:]
        /// The claims that the server has, and those of them that are leases.
        var claims: Set<UInt64> = []
        var leases: Set<UInt64> = []
        /// Whether the server has lost anything that it had confirmed.
        var isLost = false
        /// Whether something is lost that cannot be repaired.
        var isBeyondRepair = false
        var repairedCount = 0
        var repetitions: Deque<ConfirmedEffect> = []
        var consumptions: [Consumption] = []
        /// What the server refuses for now: other processes may have to repair something first.
        var refused: [any EngineOperation] = []

        /// - Parameter unfinished: the comparison on an earlier connection. What it has found and not done yet is not forgotten.
        init(after unfinished: Comparison?, effectCount: UInt64) {
            self.effectCount = effectCount
            guard let unfinished else { return }
            isLost = unfinished.isLost
            isBeyondRepair = unfinished.isBeyondRepair
            repairedCount = unfinished.repairedCount
            refused = unfinished.refused
            guard case .compare = unfinished.step else { return }
            consumptions = unfinished.consumptions.map { Consumption(request: $0.request) }
        }

        /// Records a line of the list.
        mutating func listed(_ line: EngineReply.Line) {
            lastNumbers[line.slot] = line.number
            if line.isClaim { claims.insert(line.number) }
            if line.state == .held { leases.insert(line.number) }
        }

        /// Records the end of the list, and what follows from it.
        mutating func found(isLost: Bool, _ actions: [ReplyAction]) {
            isListed = true
            self.isLost = self.isLost || isLost
            for action in actions {
                switch action {
                case .lose: isBeyondRepair = true
                // The end of a claim, or a claim that waits again.
                case .send(let request) where request.release != nil || request.operation is End: repairedCount += 1
                default: break
                }
            }
        }

        /// Whether the server lacks the effect of a request.
        func isMissing(_ effect: ConfirmedEffect) -> Bool {
            if effect.count > effectCount { return false }
            let last = lastNumbers[effect.slot] ?? 0
            return switch effect.request.operation.once {
            case .slot: last < effect.request.number
            case .claim(let number, _): last < number || claims.contains(number)
            case .idempotent: false
            }
        }
    }

    /// The repetitions that are not part of a comparison.
    struct LateRepairs {
        var underWay = 0
        var done = 0
    }

    /// How long a process tries to repair what depends on the repairs of others.
    static let repairPatience = Duration.seconds(10)
    private static let pauseBeforeRepair = Duration.milliseconds(100)
    /// The number of repetitions that are under way at once.
    private static let maxRepetitions = 256

    /// Whether only requests of the comparison may be sent: see ``comesFirst(_:)``.
    var isComparing: Bool { isLive && live.comparison != nil }

    /// Whether all that was lost is repaired or reported.
    var hasRepaired: Bool {
        guard isLive, live.comparison == nil, live.lateRepairs.underWay == 0 else { return false }
        return lostEffects.operations.isEmpty && !claims.keys.contains(where: Self.isOwn)
    }

    /// Whether a request is part of the comparison.
    func comesFirst(_ request: EngineRequest) -> Bool {
        isLive && request.session == life.id && live.comparison?.awaited.contains(request.number) == true
    }

    // MARK: Comparison

    /// Handles a new connection for commands: it may lead to another server, which has lost the last writes.
    ///
    /// - Returns: the requests that must come before all others, until ``isComparing`` is false.
    mutating func reconnected(now: Duration) -> [EngineRequest] {
        guard isLive, !isExpired(at: now) else { return [] }
        live.notices.reconnected()
        effects.forgetOld(now)
        // What an earlier comparison has not finished, this one does.
        for (number, entry) in live.pending {
            switch entry.purpose {
            case .reconcile: live.pending[number] = nil
            case .repetition:
                live.pending[number] = nil
                effects.maybeComesLate(number)
            default: break
            }
        }
        live.reconciliation = .none
        live.comparison = Comparison(after: live.comparison, effectCount: effects.count)
        let requests = [heartbeat(now)] + (reconcile().map { [$0] } ?? [])
        live.comparison!.awaited = Set(requests.map(\.number))
        return requests
    }

    /// Goes on with the comparison after the reply to a request, or its failure.
    ///
    /// - Parameter actions: those that follow from the reply.
    mutating func continueComparison(
        after request: EngineRequest, _ actions: [ReplyAction], _ now: Duration
    ) -> [ReplyAction] {
        guard comesFirst(request) else { return [] }
        for case .send(let next) in actions {
            switch live.pending[next.number]?.purpose {
            // The release of a claim that is missing records its end in the slot. A repetition would come too late then.
            case .background where next.release.map({ !live.comparison!.claims.contains($0.claim) }) ?? false: break
            case .reconcile, .confirm, .background: live.comparison!.awaited.insert(next.number)
            default: break
            }
        }
        if live.pending[request.number] == nil { live.comparison!.awaited.remove(request.number) }
        var further: [ReplyAction] = []
        while let comparison = live.comparison, comparison.awaited.isEmpty {
            switch comparison.step {
            case .compare:
                findLosses()
                live.comparison!.step = .consume
            case .consume:
                further += consumptions(now)
                live.comparison!.step = .repeat
            case .repeat:
                further += repetitions()
                if live.comparison!.awaited.isEmpty { live.comparison!.step = .end }
            case .end: further += endComparison(now)
            }
        }
        return further
    }

    /// Decides what to do about the effects that the server lacks.
    private mutating func findLosses() {
        var comparison = live.comparison!
        defer { live.comparison = comparison }
        // A grant that a message has brought is not in what the heartbeat compares.
        if comparison.isListed, effects.effects.contains(where: comparison.isMissing) { comparison.isLost = true }
        guard comparison.isLost else { return }
        guard comparison.isListed else {
            comparison.isBeyondRepair = true
            return
        }
        if let last = effects.lastForgotten, comparison.isMissing(last) { comparison.isBeyondRepair = true }
        var settled: Set<UInt64> = []
        for effect in effects.effects.sorted(by: { $0.request.number < $1.request.number })
        where comparison.isMissing(effect) {
            switch (effect.request.operation.remedy, effect.request.operation.once) {
            case (.again, .claim(let number, _)) where comparison.leases.contains(number):
                comparison.repetitions.append(effect)
            case (.again, .claim), (.report, _):
                comparison.isBeyondRepair = true
                settled.insert(effect.request.number)
            case (.again, _): comparison.repetitions.append(effect)
            case (.consumeAgain, _):
                settled.insert(effect.request.number)
                // It was repeated before a message has brought the grant.
                giveUp(effect.request.number)
                guard let request = effect.request.operation as? Acquire else { break }
                comparison.consumptions.append(Comparison.Consumption(request: request))
            case (.none, _): break
            }
        }
        effects.remove(settled)
    }

    private mutating func repetitions() -> [ReplyAction] {
        var actions: [ReplyAction] = []
        while actions.count < Self.maxRepetitions, let effect = live.comparison!.repetitions.popFirst() {
            var entry = Session.Pending(request: effect.request, purpose: .repetition)
            entry.mayComeLate = effect.mayComeLate
            live.pending[effect.request.number] = entry
            live.comparison!.awaited.insert(effect.request.number)
            actions.append(.send(effect.request))
        }
        return actions
    }

    /// Handles the reply to a repetition.
    mutating func repeated(_ request: EngineRequest, _ reply: EngineReply) {
        guard live.comparison != nil else { return }
        switch (reply, request.operation.once) {
        case (.done, _): live.comparison!.repairedCount += 1
        // Also if a later request has come to the slot: then this one has no effect any more.
        case (_, .slot):
            effects.remove([request.number])
            live.comparison!.refused.append(request.operation)
        default: repetitionFailed(request)
        }
    }

    /// Handles a request that cannot be repeated.
    mutating func repetitionFailed(_ request: EngineRequest) {
        effects.remove([request.number])
        live.comparison?.isBeyondRepair = true
    }

    private mutating func consumptions(_ now: Duration) -> [ReplyAction] {
        var actions: [ReplyAction] = []
        for consumption in live.comparison!.consumptions {
            if let request = consumeAgain(consumption.request, now) {
                live.comparison!.awaited.insert(request.number)
                actions.append(.send(request))
            }
            // After it, so that no other waiter receives permits that this claim may have been granted.
            if let line = consumption.waiting {
                let request = end(line)
                live.comparison!.awaited.insert(request.number)
                actions.append(.send(request))
            }
        }
        live.comparison!.repairedCount += live.comparison!.consumptions.count
        return actions
    }

    private mutating func endComparison(_ now: Duration) -> [ReplyAction] {
        let comparison = live.comparison!
        live.comparison = nil
        // The server has all effects that are left, so the next one is compared with them.
        if live.seen == nil, let last = effects.effects.last(where: { $0.request.operation.once == .slot }) {
            live.seen = .written(slot: last.slot, number: last.request.number)
        }
        var actions: [ReplyAction] = []
        if comparison.isLost, comparison.repairedCount > 0 {
            actions.append(.event(.repaired(operations: comparison.repairedCount)))
        }
        if comparison.isBeyondRepair { actions.append(.event(.dataLost)) }
        return actions + comparison.refused.map { .send(repair($0, until: now + Self.repairPatience)) }
    }

    /// Takes those claims out of the list that a repair is about, and returns the others: claims that an operation ends which
    /// Redis has lost, and those that wait for permits which the process has consumed.
    mutating func takeOver(_ found: [EngineReply.Line]) -> [EngineReply.Line] {
        guard let effectCount = live.comparison?.effectCount, !effects.effects.isEmpty else { return found }
        var ends: Set<UInt64> = []
        var consumed: [UInt64: Acquire] = [:]
        var reported: Set<UInt64> = []
        for effect in effects.effects where effect.count <= effectCount {
            switch (effect.request.operation.remedy, effect.request.operation.once) {
            case (.again, .claim(let number, _)): ends.insert(number)
            case (.consumeAgain, _): consumed[effect.request.number] = effect.request.operation as? Acquire
            case (.report, _): reported.insert(effect.request.number)
            default: break
            }
        }
        var taken: Set<UInt64> = []
        let others = found.filter { line in
            if live.claimIDs[line.number] != nil { return true }
            if line.state == .held, ends.contains(line.number) { return false }
            guard line.state == .waiting else { return true }
            if reported.contains(line.number) { live.comparison!.isBeyondRepair = true }
            guard let request = consumed[line.number] else { return true }
            taken.insert(line.number)
            giveUp(line.number)
            live.comparison!.consumptions.append(Comparison.Consumption(request: request, waiting: line))
            return false
        }
        if others.count < found.count { live.comparison!.isLost = true }
        effects.remove(taken)
        return others
    }

    // MARK: Repairs outside of a comparison

    /// An operation that no caller has begun: permits are consumed again.
    static func isOwn(_ id: ID) -> Bool { id >= firstOwnID }
    private static let firstOwnID: ID = 1 << 63

    /// Consumes permits again that were consumed before. If others are granted them first, that is reported after
    /// ``repairPatience``.
    private mutating func consumeAgain(_ request: Acquire, _ now: Duration) -> EngineRequest? {
        // In a new slot: a free one may have served another request that is repeated.
        lastOwnID += 1
        let id = Self.firstOwnID + lastOwnID
        let limit = WaitLimit(timeout: Self.repairPatience, deadline: now + Self.repairPatience)
        claims[id] = Claim(request: request.preferred, limit: limit, family: request.family)
        scheduleDeadline(id, at: limit.deadline)
        return begin(id, inNewSlot: true, now)
    }

    /// Handles a refusal of permits that are consumed again. The semaphore may not exist yet.
    mutating func consumptionRefused(_ id: ID, _ now: Duration) -> [ReplyAction] {
        guard let limit = claims[id]?.limit, now < limit.deadline, let slot = claims[id]?.slot else {
            forgetEnded(id)
            return [.event(.dataLost)]
        }
        if let number = claims[id]?.number { live.claimIDs[number] = nil }
        live.slots.give(slot)
        claims[id]!.state = .idle
        return begin(id, now).map { [.retry($0, after: Self.pauseBeforeRepair)] } ?? []
    }

    /// Returns a request that carries out an operation again that is lost.
    private mutating func repair(_ operation: any EngineOperation, until end: Duration) -> EngineRequest {
        live.lateRepairs.underWay += 1
        return makeRequest(operation, .repair(until: end))
    }

    /// Handles the reply to a repair, or `nil` for its failure.
    mutating func repairAnswered(
        _ request: EngineRequest, until end: Duration, _ reply: EngineReply?, _ now: Duration
    ) -> [ReplyAction] {
        if case .occupied? = reply {} else if let slot = request.slot { live.slots.give(slot) }
        live.lateRepairs.underWay -= 1
        var actions: [ReplyAction] = []
        switch reply {
        case .done: live.lateRepairs.done += 1
        case nil: actions.append(.event(.dataLost))
        default:
            guard now < end else {
                actions.append(.event(.dataLost))
                break
            }
            actions.append(.retry(repair(request.operation, until: end), after: Self.pauseBeforeRepair))
        }
        if live.lateRepairs.underWay == 0, live.lateRepairs.done > 0 {
            actions.append(.event(.repaired(operations: live.lateRepairs.done)))
            live.lateRepairs.done = 0
        }
        return actions
    }

    // MARK: The next session

    /// Records what is lost with a session of which Redis knows nothing.
    ///
    /// Others may have swept the session, if the server's clock was set forward. So this counts only if Redis has lost
    /// everything, or if the session was too young for a new server, and the server has not seen it expire.
    mutating func keepEffects(of session: Session, _ now: Duration) {
        effects.forgetOld(now)
        let unfinished = session.pending.values.filter { if case .repair = $0.purpose { true } else { false } }
        let lost = effects.takeAll().map(\.request) + unfinished.map(\.request)
        let refused = session.comparison?.refused ?? []
        lostEffects = LostEffects(
            operations: lost.sorted { $0.number < $1.number }.map(\.operation)
                + refused, session: life.id, since: session.notices.connection > 0 ? session.since : nil,
            isUnfinished: !unfinished.isEmpty || !refused.isEmpty)
    }

    /// The effects of the session before.
    struct LostEffects {
        var operations: [any EngineOperation] = []
        /// The session.
        var session = ""
        /// When it was joined, if it has met another server since: one that is not older may have been lost with its
        /// beginning.
        var since: Duration?
        /// Whether some of them were being carried out again already.
        var isUnfinished = false
    }

    /// Does again what was lost with the session before.
    ///
    /// Redis lists the sessions that were swept within a minute, so one that began longer ago than that counts as swept.
    mutating func repairsOfLastSession(
        isEverythingLost: Bool, mayHaveExpired: Bool, _ now: Duration
    ) -> [JoinAction] {
        defer { lostEffects = LostEffects() }
        let isYoung = lostEffects.since.map { now - $0 < settings.repairTime } ?? false
        guard isEverythingLost || isYoung && !mayHaveExpired else {
            return lostEffects.isUnfinished ? [.event(.dataLost)] : []
        }
        return lostEffects.operations.compactMap { operation -> EngineRequest? in
            switch (operation.remedy, operation.once) {
            case (.again, .slot): repair(operation, until: now + Self.repairPatience)
            case (.consumeAgain, _): (operation as? Acquire).flatMap { consumeAgain($0, now) }
            default: nil
            }
        }.map { .send($0) }
    }
}
