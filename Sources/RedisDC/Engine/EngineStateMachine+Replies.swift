// Replies of Redis and failed requests: which of them are final, and which are sent again. +Answers and +Failures have the
// effects of those that are final.
import CoordinationBase
import DequeModule
import Hiredis

/// An action that sends a request. The enums of several events conform, so that a generic function can serve them all.
protocol SendingAction { static func send(_ request: EngineRequest) -> Self }

/// An action that ends an operation.
protocol FinishingAction {
    static func finish(_ id: EngineStateMachine.ID, _ result: EngineStateMachine.Finish) -> Self
}

/// An action on a claim that a wake-up or the comparison with Redis is about.
protocol ClaimAction: SendingAction, FinishingAction {
    static func lose(_ id: EngineStateMachine.ID, _ error: RedisDCError) -> Self
}

extension EngineStateMachine {
    enum ReplyAction: ClaimAction {
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
    ///
    /// - Parameter connection: ``connection`` when the request was sent. A reply to a request of an earlier one counts as
    ///   lost: a task may have passed it on late, and the list of claims on the new connection knows nothing of it.
    mutating func reply(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, sentOn connection: UInt64, now: Duration
    ) -> [ReplyAction] {
        let actions = handle(request, result, sentOn: connection, now)
        return isComparing ? actions + continueComparison(after: request, actions, now) : actions
    }

    private mutating func handle(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, sentOn connection: UInt64, _ now: Duration
    ) -> [ReplyAction] {
        if isExpired(at: now) { return [.sessionEnded(endSession(.expired, now))] }
        guard isLive, request.session == life.id, let entry = live.pending[request.number] else { return [] }
        switch result {
        case .failure(.retry(let error)):
            return retry(entry, error, now)
        case .success where connection != self.connection, .failure where connection != self.connection:
            let late = RedisError(.connectionLost, "the reply came after a new connection", mayHaveRun: true)
            return retry(entry, late, now)
        case .failure(.fatal(var error)):
            if let request = settle(entry, .error(error)) { return [.send(request)] }
            live.pending[request.number] = nil
            if entry.mayComeLate, entry.request.operation.once == .slot { error.mayHaveRun = true }
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
            if let change = entry.change(by: reply) { live.seen = change }
            remember(entry, reply, now)
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
        case .call, .repair, .repetition: guard request.operation.once == .slot else { return nil }
        default: return nil
        }
        request.operation = Settle(refused: request.operation)
        live.pending[request.number]!.request = request
        live.pending[request.number]!.refusal = refusal
        return request
    }

    /// Handles the reply to ``Settle``: the refusal counts, unless a copy of the request has arrived in
    /// between. Then the reply is that of the copy.
    mutating func settled(
        _ entry: Session.Pending, _ refused: any EngineOperation, _ reply: EngineReply, _ now: Duration
    ) -> [ReplyAction] {
        var entry = entry
        entry.request.operation = refused
        guard case .settled = reply, let refusal = entry.refusal else {
            remember(entry, reply, now)
            return answered(entry, reply, now)
        }
        if case .call(let id) = entry.purpose { calls[id]?.mayHaveRun = false }
        switch refusal {
        case .reply(let reply): return answered(entry, reply, now)
        case .error(let error): return failed(entry, error, now)
        }
    }

    /// Remembers a confirmed request, which a new server may lack.
    private mutating func remember(_ entry: Session.Pending, _ reply: EngineReply, _ now: Duration) {
        guard case .done = reply, entry.request.operation.remedy != .none else { return }
        if case .repetition = entry.purpose { return }
        effects.append(entry.request, at: now)
    }

    /// Handles a request that has not written to its slot: what its success would have confirmed is still unconfirmed.
    private mutating func notWritten(_ entry: Session.Pending, _ due: Duration) {
        for permit in entry.purpose.confirmed { live.slots.addUnconfirmed(permit.slot, permit.number, at: due) }
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
        case .call: entry.failures == 0 && entry.request.operation.once == .slot
        default: false
        }
    }

    /// Whether the request for a claim has no answer yet, and no other one is to end the claim.
    func isRequested(_ id: ID, _ number: UInt64) -> Bool {
        if case .requested(number)? = claims[id]?.state { true } else { false }
    }

    /// The pause before a request is made again in another slot. Without it, a server on which all slots seem occupied
    /// would be asked as fast as it answers.
    private static let pauseWhenOccupied = Duration.milliseconds(20)

    /// Handles a slot that has a claim which this process has ended, because Redis has lost the end, or a slot with a
    /// damaged record. The request is made again in another slot, and the comparison with Redis ends the claim. This slot
    /// is not used again in this session.
    private mutating func occupied(_ entry: Session.Pending, _ now: Duration) -> [ReplyAction] {
        switch entry.purpose {
        case .repetition:
            repeated(entry.request, .occupied)
            return []
        case .repair(let end): return repairAnswered(entry.request, until: end, .occupied, now)
        default: break
        }
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
        default: break
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

    private mutating func retry(_ entry: Session.Pending, _ error: RedisError, _ now: Duration) -> [ReplyAction] {
        let number = entry.request.number
        if case .claim(let id) = entry.purpose, !isRequested(id, number) {
            // A message has brought the outcome. A repetition would make a claim for nobody if a new master lacks this one.
            live.pending[number] = nil
            freeSlot(of: entry)
            return requestsFromBacklog(now)
        }
        live.pending[number]!.failures += 1
        if error.mayHaveRun { live.pending[number]!.mayComeLate = true }
        if case .call(let id) = entry.purpose, error.mayHaveRun { calls[id]?.mayHaveRun = true }
        return [.retry(entry.request, after: .milliseconds(10 << min(entry.failures, 6)))]
    }
}

extension EngineStateMachine.Session.Pending {
    /// The change of a slot that this reply proves; `nil` when there is none.
    fileprivate func change(by reply: EngineReply) -> SlotChange? {
        if case .done = reply, let last = purpose.confirmed.last {
            return .ended(slot: last.slot, number: last.number)
        }
        return request.change(by: reply)
    }
}

extension EngineReply {
    /// Whether the request, or a later one, has written to its slot, which confirms what the slot had before.
    fileprivate var hasWritten: Bool {
        switch self {
        case .granted, .queued, .done, .settled, .stale: true
        case .none, .over, .conflict, .missing, .gone, .broken, .known, .lost, .occupied, .family, .again,
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
