// What Redis answers, and what becomes of the claim, the call or the lease that it is about. Answers to heartbeats and
// comparisons are in EngineStateMachine+Time.swift and EngineStateMachine+Reconcile.swift.
import DequeModule
import Hiredis
import CoordinationBase

extension EngineStateMachine {
    mutating func reply(
        _ request: EngineRequest, _ result: Result<EngineReply, Failure>, now: Duration
    ) -> [Action] {
        var actions = expire(now)
        guard request.session == session.id, let entry = pending[request.number] else { return actions }
        switch result {
        case .failure(.retry(let error)):
            return actions + retry(request.number, error)
        case .failure(.fatal(let error)):
            settle(request.number)
            // What it carried has not arrived.
            acknowledgements = request.acknowledged + acknowledgements
            if !acknowledgements.isEmpty { acknowledgeAt = acknowledgeAt ?? now + settings.heartbeatInterval }
            return actions + failed(entry, error, now) + catchUp(now)
        case .success(.lost(let isOver)):
            return actions + lose(isOver || now >= session.end ? .expired : .dataLost, now)
        case .success(let reply):
            settle(request.number)
            actions += answered(entry, reply, now)
            return actions + catchUp(now)
        }
    }

    /// It will be begun when that is possible. A wait goes on until its deadline; anything else is not kept for ever.
    mutating func postpone(_ id: ID, _ now: Duration) {
        let claim = claims[id]
        guard claim != nil || calls[id] != nil else { return }
        backlog.append(id)
        if claim?.request.queues != true, claim?.deadline == nil { remind(id, at: now + settings.callTimeout) }
    }

    /// Begins what has waited until fewer requests are under way.
    private mutating func catchUp(_ now: Duration) -> [Action] {
        var actions: [Action] = []
        while phase == .live, pending.count < Self.maxPending, let next = backlog.popFirst() {
            actions += begin(next, now)
        }
        return actions
    }

    mutating func settle(_ number: UInt64) {
        pending[number] = nil
        window.settle(number)
    }

    mutating func retry(_ number: UInt64, _ error: RedisError) -> [Action] {
        pending[number]!.failures += 1
        if case .call(let id) = pending[number]!.purpose, error.mayHaveRun { calls[id]?.mayHaveRun = true }
        let pause = Duration.milliseconds(10 << min(pending[number]!.failures - 1, 6))
        return [.send(pending[number]!.request, after: pause)]
    }

    mutating func answered(_ entry: Pending, _ reply: EngineReply, _ now: Duration) -> [Action] {
        switch entry.purpose {
        case .claim(let id): return answeredClaim(id, entry.request.number, reply, now)
        case .end(let id): return ended(id, entry.request.operation, reply, now) + more(entry.request.operation, reply)
        case .call(let id):
            calls[id] = nil
            if case .pass(_, let number, _, _) = entry.request.operation {
                if case .done = reply { claimOf[number].map { forget($0) } } else { keep(number) }
            }
            return [.finish(id, result(of: entry.request.operation, reply))] + more(entry.request.operation, reply)
        case .heartbeat(let sent): return beaten(sent, reply, now)
        case .reconcile(let known, let found): return reconciled(known, found, reply, now)
        case .background: return more(entry.request.operation, reply)
        }
    }

    mutating func failed(_ entry: Pending, _ error: RedisDCError, _ now: Duration) -> [Action] {
        switch entry.purpose {
        case .claim(let id): return drop(id, error)
        case .end(let id):
            // The session's end will free it.
            guard let claim = claims[id] else { return [] }
            if case .leaving(_, let why) = claim.state { return drop(id, why) }
            forget(id)
            return claim.releaser.map { [.finish($0, .failure(error))] } ?? []
        case .call(let id):
            var error = error
            if calls[id]?.mayHaveRun == true { error.mayHaveRun = true }
            calls[id] = nil
            if case .pass(_, let number, _, _) = entry.request.operation { keep(number) }
            return [.finish(id, .failure(error))]
        case .heartbeat:
            isBeating = false
            heartbeatAt = now + .milliseconds(200)
            return []
        case .reconcile:
            isReconciling = false
            return []
        case .background: return []
        }
    }

    /// What was to be passed on is still held.
    private mutating func keep(_ number: UInt64) {
        guard let id = claimOf[number], case .releasing(_, let fence)? = claims[id]?.state else { return }
        claims[id]!.state = .held(number, fence: fence)
    }

    mutating func answeredClaim(
        _ id: ID, _ number: UInt64, _ reply: EngineReply, _ now: Duration
    ) -> [Action] {
        guard let claim = claims[id], case .asked(number) = claim.state else { return [] }
        switch reply {
        case .granted(let fence, let value): return granted(id, number, fence, value, now)
        case .queued:
            claims[id]!.state = .queued(number)
            return letGo(for: id, now)
        case .none:
            forget(id)
            return [.finish(id, .success(.notAvailable))]
        default:
            forget(id)
            return [.finish(id, result(of: .claim(claim.request), reply))]
        }
    }

    mutating func granted(
        _ id: ID, _ number: UInt64, _ fence: UInt64, _ value: UInt64, _ now: Duration
    ) -> [Action] {
        let others = letGo(for: id, now)
        let isLease = claims[id]!.request.mode != .consume
        let grant = Grant(
            claim: id, fence: fence, value: value, life: session, watch: isLease ? LeaseWatch() : nil)
        if !isLease {
            forget(id)
            acknowledgements.append(number)
            acknowledgeAt = acknowledgeAt ?? now + settings.acknowledgeDelay
        } else {
            claims[id]!.state = .held(number, fence: fence)
        }
        return others + [.finish(id, .success(.granted(grant)))]
    }

    /// It has its place: what it was to let go for it can go.
    private mutating func letGo(for id: ID, _ now: Duration) -> [Action] {
        guard let claim = claims[id], !claim.hasLetGo, case .letsGo(let other)? = claim.request.detail else {
            return []
        }
        claims[id]!.hasLetGo = true
        return release(other, releaser: nil, now: now)
    }

    /// Whether a lease is held and not being released.
    func holds(_ id: ID) -> Bool {
        if case .held? = claims[id]?.state { true } else { false }
    }

    /// What can be done with a lease, other than ending it.
    enum Use: Sendable {
        /// Gives all but so many of its permits back.
        case reduce(keep: Int)
        case read
        /// Turns it into a permit of another resource.
        indirect case pass(to: Resource, item: [UInt8]?)
    }

    mutating func use(_ id: ID, claim: ID, _ use: Use, now: Duration) -> [Action] {
        let late = expire(now)
        guard let held = claims[claim], case .held(let number, let fence) = held.state else {
            return late + [.finish(id, .failure(RedisDCError(.lost, "it was not held any more")))]
        }
        let name = held.request.resource.name
        switch use {
        case .reduce(let keep): return late + call(id, .reduce(name: name, claim: number, keep: keep), now: now)
        case .read: return late + call(id, .read(name: name, claim: number), now: now)
        case .pass(let resource, let item):
            claims[claim]!.state = .releasing(number, fence: fence)
            return late + call(id, .pass(resource, claim: number, from: name, item: item), now: now)
        }
    }

    mutating func ended(_ id: ID, _ operation: Operation, _ reply: EngineReply, _ now: Duration) -> [Action] {
        if case .granted(let fence, let value) = reply, case .leave(let name, let number) = operation {
            // It was granted before it could leave. If nobody wants it any more, it goes.
            guard case .leaving? = claims[id]?.state else {
                return [send(.release(name: name, claim: number), .background)]
            }
            return granted(id, number, fence, value, now)
        }
        guard let claim = claims[id] else { return [] }
        switch claim.state {
        case .leaving(_, let error): return drop(id, error)
        case .releasing:
            forget(id)
            // A release whose answer was lost finds nothing the second time: it was held, or the session were lost.
            return claim.releaser.map { [.finish($0, .success(.done(1)))] } ?? []
        default: return []
        }
    }

    mutating func more(_ operation: Operation, _ reply: EngineReply) -> [Action] {
        guard case .done(_, let more) = reply, more else { return [] }
        switch operation {
        case .release, .leave, .give, .destroy, .signal, .resize, .gate, .count, .reduce, .pass:
            return [send(.give(name: operation.name), .background)]
        case .claim, .create, .read, .heartbeat, .reconcile: return []
        }
    }

    func result(of operation: Operation, _ reply: EngineReply) -> Result<Outcome, RedisDCError> {
        let name = operation.name
        switch reply {
        case .done(let count, _): return .success(.done(count))
        case .values(let values): return .success(.values(values))
        case .none: return .failure(RedisDCError(.lost, "\"\(name)\" was not held any more"))
        case .conflict(let kind, let permits, let policy):
            let found = Resource.describe(Resource.Kind(rawValue: kind), permits: permits, policy: policy)
            return .failure(
                RedisDCError(
                    .conflict, "\"\(name)\" is \(found), which is not what this call wants\(operation.wanted)"))
        case .broken:
            return .failure(
                RedisDCError(
                    .broken, "\"\(name)\" is broken: one who took part has died or given up; destroy it to begin anew"))
        case .over:
            return .failure(
                RedisDCError(.lost, "\"\(name)\" was taken away by an operator or destroyed before the answer came"))
        case .missing:
            return .failure(
                RedisDCError(.notFound, "there is no semaphore \"\(name)\"; create it with a number of permits"))
        case .gone: return .failure(RedisDCError(.destroyed, "\"\(name)\" has been destroyed"))
        default: return .failure(RedisDCError(.serverError, "unexpected answer \(reply) for \"\(name)\""))
        }
    }

    mutating func drop(_ id: ID, _ error: RedisDCError) -> [Action] {
        guard claims[id] != nil || calls[id] != nil else { return [] }
        forget(id)
        calls[id] = nil
        return [.finish(id, .failure(error))]
    }

    mutating func forget(_ id: ID) {
        if let number = claims.removeValue(forKey: id)?.number { claimOf[number] = nil }
    }
}

extension Operation {
    fileprivate var wanted: String {
        switch self {
        case .claim(let request): " (\(request.resource.description))"
        case .signal(let resource, _), .create(let resource), .resize(let resource, _), .gate(let resource, _),
            .count(let resource, _), .destroy(let resource), .pass(let resource, _, _, _):
            " (\(resource.description))"
        default: ""
        }
    }
}

extension Resource {
    fileprivate var description: String { Self.describe(kind, permits: permits, policy: String(policy)) }

    fileprivate static func describe(_ kind: Kind?, permits: Int?, policy: String) -> String {
        let number = permits.map { "\($0)" } ?? "any number of"
        return switch kind {
        case .semaphore:
            "a semaphore with \(number) permits" + (policy == "b" ? ", barging" : ", first come first served")
        case .readWriteLock:
            "a read-write lock" + (policy == "r" ? ", readers first" : policy == "w" ? ", writers first" : "")
        case .latch: "a latch for \(number), " + (policy == "f" ? "broken by a death" : "a death counts as down")
        case .exchanger: "an exchanger for \(number)"
        case .boundedBuffer: "a bounded buffer for \(number)"
        case .barrier:
            "a barrier for \(number), " + (policy == "b" ? "broken by who leaves" : "who leaves is taken out")
        case let kind?: "a \(kind.title)"
        case nil: "broken or being destroyed"
        }
    }
}
