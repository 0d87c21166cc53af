// The life of a session: its start, its loss and replacement by the next one, and the shutdown.
import CoordinationBase
import DequeModule
import Hiredis

extension EngineStateMachine {
    /// The state of a live session.
    struct Session {
        /// The purpose of a request, which decides how its reply is handled.
        enum Purpose {
            case claim(ID)
            /// Makes a claim that the process has given up since. `end`: the number of the request that ends the claim.
            case givenUp(end: UInt64)
            /// Releases a claim, or removes it from the queue, and frees its slot.
            case end(ID)
            case call(ID)
            /// `notices`: those that the session knew when it was sent.
            case heartbeat(sent: Duration, notices: UInt64)
            /// See `reconcileAnswered`.
            case reconcile(known: [UInt64: KnownClaim], found: [EngineReply.Line])
            /// Confirms the arrival of consumed permits.
            case confirm([Slots.Confirmation])
            /// Lists the sessions again.
            case listSessions
            /// Sweeps an expired session. `hasClaims`: an earlier page of this pass had claims. `isSecond`: the pass
            /// follows one that has ended all claims, to delete the session.
            case sweep(String, hasClaims: Bool, isSecond: Bool)
            /// Ends a claim of an expired session on this resource.
            case endExpired(ClaimID, name: String)
            /// Sets a claim of an expired session aside.
            case setAside(ClaimID, name: String)
            /// Repeats a request that Redis has lost.
            case repetition
            /// Carries out an operation again that Redis has lost, as a new request.
            case repair(until: Duration)
            /// No caller waits for the reply.
            case background

            /// The permits whose arrival the request confirms.
            var confirmed: [Slots.Confirmation] { if case .confirm(let permits) = self { permits } else { [] } }
        }

        /// A claim as the process knew it when it requested the list of its claims.
        enum KnownClaim {
            case queued
            case held(fence: UInt64, hasItem: Bool)
            /// Its permits have arrived and are consumed, which Redis may not know yet.
            case consumed
        }

        /// A request in flight.
        struct Pending {
            var request: EngineRequest
            var purpose: Purpose
            /// The number of the request that had consumed permits in the same slot. This request confirms their
            /// arrival when it writes to the slot.
            var confirms: UInt64?
            var failures = 0
            /// Whether a copy of the request may still arrive, because the connection on which it was sent was lost
            /// before the reply.
            var mayComeLate = false
            /// Whether the request for the claim that this one ends has succeeded.
            var endsClaim = false
            /// Whether its slot is free when it is answered.
            var freesSlot = false
            /// The refusal of the request, while Redis is being told of it: see ``Settle``.
            var refusal: Refusal?
        }

        /// The reply or error that refused a request.
        indirect enum Refusal {
            case reply(EngineReply)
            case error(RedisDCError)
        }

        enum Heartbeat {
            case due(at: Duration)
            /// `next`: when the next heartbeat is due.
            case inFlight(next: Duration)
        }

        enum Reconciliation {
            case none
            /// `again`: another comparison follows this one.
            case running(again: Bool)
        }

        /// When it was joined.
        var since: Duration
        /// The comparison with the server of a new connection, while there is one.
        var comparison: Comparison?
        var lateRepairs = LateRepairs()
        /// The number of the last request.
        var lastNumber: UInt64 = 0
        var slots = Slots()
        /// The last change of a slot that Redis has confirmed.
        var seen: SlotChange?
        var pending: [UInt64: Pending] = [:]
        /// The claims by the numbers of their requests.
        var claimIDs: [UInt64: ID] = [:]
        var heartbeat: Heartbeat
        var reconciliation = Reconciliation.none
        /// The arrivals whose end has not been answered: the names of their resources, by the numbers of the requests that end
        /// them.
        var leaving: [UInt64: String] = [:]
        /// What waits for such an end: registrations with phasers that are to be released, and new arrivals.
        var afterLeaving: [ID] = []
        /// Claims of expired sessions that the server could not end, and how often it has failed.
        var failedEnds: [ClaimID: Int] = [:]
        var notices = Notices()
        var channel: Channel
    }

    /// The session's wake-up channel.
    enum Channel {
        case subscribed
        /// Wake-ups do not arrive. At `pollAt` the machine compares its claims with Redis, if any are queued.
        case unsubscribed(pollAt: Duration)

        var isSubscribed: Bool { if case .subscribed = self { true } else { false } }
    }

    /// The claims of a stopped session that must still be released, and its confirmations that must still be sent.
    struct UnreleasedState {
        var claims: [(Claim, number: UInt64)]
        /// The ends of other claims, which nobody waits for any more: they may not have reached the server.
        var ends: [EngineRequest]
        var lastNumber: UInt64
        var slots: Slots
    }

    // MARK: Begin

    enum StartAction {
        case none
        case subscribe(SessionLife)
    }

    /// Starts the first session. Does nothing when it was started before.
    mutating func start() -> StartAction {
        guard case .idle = phase else { return .none }
        phase = .subscribing
        return .subscribe(life)
    }

    enum SubscriptionAction {
        case none
        case join(SessionLife)
        case send(EngineRequest)
    }

    /// Handles a confirmed, failed or interrupted subscription to the session's channel. A failed or interrupted
    /// subscription is always retried.
    mutating func subscriptionChanged(_ id: String, isSubscribed: Bool, now: Duration) -> SubscriptionAction {
        guard id == life.id else { return .none }
        let channel = isSubscribed ? Channel.subscribed : .unsubscribed(pollAt: now + settings.pollInterval)
        switch phase {
        case .idle, .stopped: return .none
        case .subscribing:
            phase = .joining(since: now, channel)
            return .join(life)
        case .joining(let since, _):
            phase = .joining(since: since, channel)
            return .none
        case .live:
            let wasSubscribed = live.channel.isSubscribed
            live.channel = channel
            guard isSubscribed, !wasSubscribed else { return .none }
            return reconcile().map { .send($0) } ?? .none
        }
    }

    enum JoinAction {
        case event(CoordinatorEvent)
        case send(EngineRequest)
    }

    /// Handles a successful join: the session is live, and the backlog is sent.
    ///
    /// - Parameters:
    ///   - next: as in ``EngineReply/MaintenanceWork``.
    ///   - lastMayHaveExpired: whether the session in ``lostEffects`` may have expired on the server.
    mutating func joined(
        _ id: String, epoch new: String, next: Duration? = nil, lastMayHaveExpired: Bool = false, now: Duration
    ) -> [JoinAction] {
        guard id == life.id, case .joining(let since, let channel) = phase else { return [] }
        life.extend(to: since + settings.ttl - settings.margin)
        let regular = since + settings.heartbeatInterval
        let heartbeat = Session.Heartbeat.due(at: next.map { min(regular, now + $0 + .milliseconds(1)) } ?? regular)
        phase = .live(Session(since: now, heartbeat: heartbeat, channel: channel))
        var actions: [JoinAction] = []
        let isEverythingLost = epoch.map { $0 != new } ?? false
        if isEverythingLost { actions.append(.event(.dataLost)) }
        epoch = new
        actions.append(.event(.sessionStarted(id: id)))
        actions += repairsOfLastSession(
            isEverythingLost: isEverythingLost, mayHaveExpired: lastMayHaveExpired, now)
        let waiting = backlog
        backlog = []
        for id in waiting { if let request = begin(id, now) { actions.append(.send(request)) } }
        return actions
    }

    enum JoinFailureAction {
        case none
        /// Joins again after a pause; the listed operations fail.
        case joinAgain(SessionLife, after: Duration, failing: [(ID, RedisDCError)])
    }

    /// Handles a failed join. A fatal failure fails all operations in the backlog. Joining is tried again in either
    /// case.
    mutating func joinFailed(_ id: String, _ failure: Failure, now: Duration) -> JoinFailureAction {
        guard id == life.id, case .joining(_, let channel) = phase else { return .none }
        phase = .joining(since: now, channel)
        guard case .fatal(let error) = failure else {
            return .joinAgain(life, after: .milliseconds(50), failing: [])
        }
        let waiting = backlog
        backlog = []
        let failing = waiting.filter { drop($0) }.map { ($0, error) }
        return .joinAgain(life, after: .seconds(1), failing: failing)
    }

    /// Handles a repeated join when an earlier attempt had created the session, and the session has expired since:
    /// starts another session.
    mutating func joinedTooLate(_ id: String) -> StartAction {
        guard id == life.id, case .joining = phase else { return .none }
        phase = .subscribing
        life = makeSession()
        return .subscribe(life)
    }

    /// Removes an operation that has not been granted.
    ///
    /// - Returns: whether the operation existed.
    mutating func drop(_ id: ID) -> Bool {
        guard claims[id] != nil || calls[id] != nil else { return false }
        forget(id)
        calls[id] = nil
        return true
    }

    // MARK: Loss

    enum SessionEndAction {
        case event(CoordinatorEvent)
        case fail(ID, RedisDCError)
        /// The lease is lost.
        case lose(ID, RedisDCError)
        case subscribe(SessionLife)
    }

    /// Returns whether the session has expired by the process's own clock. From then on its leases are lost, even if
    /// Redis still has the session.
    func isExpired(at now: Duration) -> Bool { isLive && now >= life.end }

    /// Ends the live session and starts the next one.
    ///
    /// Leases are lost. Waits are requested again in the next session, unless `failsWaitersOnLoss` or the request's
    /// `failsOnLoss` makes them fail.
    mutating func endSession(_ reason: SessionLoss, _ now: Duration) -> [SessionEndAction] {
        guard isLive else { return [] }
        var actions: [SessionEndAction] = [.event(.sessionLost(id: life.id, reason))]
        func lostWait(_ request: Acquire) -> RedisDCError {
            RedisDCError(.lost, "cannot \(request.purpose): the session was lost: \(reason)")
        }
        func lostLease(_ request: Acquire) -> RedisDCError {
            RedisDCError(.lost, "\(request.resource) is no longer held: the session was lost: \(reason)")
        }
        life.finish()
        for id in live.afterLeaving.reversed() { postpone(id, now, isFirst: true) }
        if reason == .dataLost { keepEffects(of: live, now) } else { _ = effects.takeAll() }
        phase = .subscribing
        life = makeSession()
        for id in claims.keys.sorted() {
            let request = claims[id]!.request
            switch claims[id]!.state {
            case .idle:
                // It depends on something that is lost with the session.
                if request.failsOnLoss, drop(id) { actions.append(.fail(id, lostWait(request))) }
            case .requested, .queued:
                if settings.failsWaitersOnLoss || request.failsOnLoss {
                    claims[id] = nil
                    actions.append(.fail(id, lostWait(request)))
                } else {
                    claims[id]!.state = .idle
                    claims[id]!.slot = nil
                    postpone(id, now)
                }
            case .abandoned(_, let reason):
                claims[id] = nil
                actions.append(.fail(id, reason))
            case .held:
                claims[id] = nil
                actions.append(.lose(id, lostLease(request)))
            case .releasing(_, _, let releaser):
                claims[id] = nil
                if let releaser { actions.append(.fail(releaser, lostLease(request))) }
            }
        }
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) where call.number != nil {
            calls[id] = nil
            let lost = RedisDCError(
                .connectionLost,
                "the session was lost while an operation on \"\(call.operation.name)\" was in progress",
                mayHaveRun: true)
            actions.append(.fail(id, lost))
        }
        return actions + [.subscribe(life)]
    }

    /// Handles the end of the Redis client, after which no replies arrive. Holders keep their leases until the session
    /// expires.
    ///
    /// - Returns: the waits that must fail, with the error of each.
    mutating func clientStopped(_ error: RedisDCError) -> [(ID, RedisDCError)] {
        let waiting = claims.filter { _, claim in
            switch claim.state {
            case .idle, .requested, .queued: true
            case .abandoned, .held, .releasing: false
            }
        }
        return waiting.keys.sorted().filter { drop($0) }.map { ($0, error) }
    }

    // MARK: Shutdown

    enum StopAction {
        case finish(ID, Finish)
        case lose(ID, RedisDCError)
    }

    /// Stops the machine: it accepts no new operations, all operations end, and all leases are lost.
    /// ``shutdownRequests()`` then returns the requests that release the claims on the server.
    mutating func stop() -> [StopAction] {
        if isStopped { return [] }
        var unreleased: UnreleasedState?
        if isLive {
            let held = claims.values.compactMap { claim in claim.number.map { (claim, number: $0) } }
                .sorted { $0.number < $1.number }
            let ends = live.pending.values.map(\.request)
                .filter { request in request.release.map { live.claimIDs[$0.claim] == nil } ?? false }
                .sorted { $0.number < $1.number }
            // Requests in flight keep what they would confirm until they have been answered.
            for entry in live.pending.values {
                for permit in entry.purpose.confirmed {
                    live.slots.addUnconfirmed(permit.slot, permit.number, at: .zero)
                }
                if let slot = entry.request.slot, let number = entry.confirms {
                    live.slots.addUnconfirmed(slot, number, at: .zero)
                }
            }
            unreleased = UnreleasedState(
                claims: held, ends: ends, lastNumber: live.lastNumber, slots: live.slots)
        }
        let error = RedisDCError(.stopped, "the coordinator is stopping")
        var actions: [StopAction] = []
        for id in claims.keys.sorted() {
            switch claims[id]!.state {
            case .held: actions.append(.lose(id, error))
            case .releasing(_, _, let releaser):
                if let releaser { actions.append(.finish(releaser, .success(.released))) }
            case .idle, .requested, .queued, .abandoned: actions.append(.finish(id, .failure(error)))
            }
        }
        for (id, call) in calls.sorted(by: { $0.key < $1.key }) {
            var stopped = error
            stopped.mayHaveRun = call.number != nil
            actions.append(.finish(id, .failure(stopped)))
        }
        phase = .stopped(unreleased)
        life.finish()
        (claims, calls, backlog) = ([:], [:], [])
        return actions
    }

    /// Returns the requests that release all claims and send all confirmations of the stopped session, in steps. The engine
    /// sends a step when Redis has answered all requests of the one before, and then leaves the session. If one was not
    /// answered, it leaves the session without the next step, and a sweep ends the claims.
    ///
    /// A registration with a phaser ends after the arrivals there: they would count in place of other parties.
    mutating func shutdownRequests() -> [[EngineRequest]] {
        guard case .stopped(var unreleased?) = phase else { return [] }
        phase = .stopped(nil)
        func request(_ operation: any EngineOperation, slot: Int?) -> EngineRequest {
            unreleased.lastNumber += 1
            return EngineRequest(session: life.id, number: unreleased.lastNumber, slot: slot, operation: operation)
        }
        var requests = unreleased.ends.compactMap { end in end.release.map { request($0, slot: end.slot) } }
        let arrivals = unreleased.claims.map(\.0.request).filter { $0.action == .arrive }.map(\.resource.name)
        let phasers = Set(arrivals + requests.map(\.operation.name))
        var registrations: [EngineRequest] = []
        for (claim, number) in unreleased.claims {
            let isLast = claim.request.action == .register && phasers.contains(claim.request.resource.name)
            let release = request(claim.release(number), slot: claim.slot)
            if isLast { registrations.append(release) } else { requests.append(release) }
        }
        for share in unreleased.slots.takeConfirmations(inSharesOf: Self.maxConfirmations) {
            requests.append(request(Confirm(session: life.id, claims: share), slot: nil))
        }
        return [requests, registrations].filter { !$0.isEmpty }
    }
}

extension EngineRequest {
    /// The release of the claim that the request ends, if it ends one.
    var release: Release? {
        if let leave = operation as? Leave { return Release(leave.target, claim: leave.claim, .meetings) }
        return operation as? Release
    }
}
