// Reads of mailboxes, and the handling of their replies.

import CoordinationBase
import DequeModule

extension ListenStateMachine {
    /// Starts a read, or queues the call until fewer reads are in flight.
    mutating func startRead(_ call: PendingListen) -> Read? {
        guard readCount < settings.maxReads else {
            call.state = .queued
            readQueue.append(call.id)
            return nil
        }
        readCount += 1
        call.state = .reading(.none)
        return Read(
            id: call.id, poll: call.poll, request: call.request, begins: !call.hasBegun,
            waits: settings.usesWakeUps && !call.request.readsOnce)
    }

    // MARK: A reply arrives

    /// The action for a call that follows from a reply or a wake-up.
    enum ReadAction: Sendable {
        case read(Read)
        case finish(ID, Finish)
    }

    /// A read was answered or has failed. Called once for each read, also if its call has ended
    /// meanwhile.
    mutating func replyArrived(_ id: ID, _ result: Result<ReadReply, Failure>, now: Duration) -> [ReadAction] {
        readCount -= 1
        var actions: [ReadAction] = []
        if let call = calls[id], case .reading(let update) = call.state {
            switch receive(result, call, update, now) {
            case .none: break
            case .read(let read): actions.append(.read(read))
            case .finish(let outcome): actions.append(.finish(id, outcome))
            }
        }
        while readCount < settings.maxReads, let next = readQueue.popFirst() {
            if let call = calls[next], case .queued = call.state, let read = startRead(call) {
                actions.append(.read(read))
            }
        }
        return actions
    }

    /// The next step of a call. A finished call has been removed.
    enum NextStep {
        case none
        case read(Read)
        case finish(Finish)
    }

    private mutating func receive(
        _ result: Result<ReadReply, Failure>, _ call: PendingListen, _ update: ListenProgress.Update, _ now: Duration
    ) -> NextStep {
        switch result {
        case .success(let reply):
            if reply.status == .forked, let earlier = trails.rewind(call.request, to: reply.position, now: now) {
                call.hasBegun = true
                call.request.cursor = earlier
                return startRead(call).map { .read($0) } ?? .none
            }
            guard reply.isEmpty else { return deliver(reply, to: call, now) }
            call.hasBegun = true
            call.request.cursor = reply.position
            failures[call.id] = nil
            return resume(call, with: update, isFresh: false, now)
        case .failure(.permanent(let error)):
            return finish(call, .failure(error), now)
        case .failure(.transient(let error)):
            if call.isOver(at: now) { return finish(call, .failure(error), now) }
            let pause = failures[call.id].map { min($0.pause * 2, settings.maxRetryPause) } ?? settings.retryPause
            failures[call.id] = ReadFailure(error: error, pause: pause)
            call.state = .pausing(until: now + pause)
            add(Deadline(at: now + pause, id: call.id))
            return .none
        }
    }

    /// Continues a call whose last read found nothing, with the update that has arrived since.
    ///
    /// - Parameter isFresh: whether the update has just arrived. Otherwise messages in it may have
    ///   expired.
    mutating func resume(
        _ call: PendingListen, with update: ListenProgress.Update, isFresh: Bool, _ now: Duration
    ) -> NextStep {
        switch update {
        case .none: break
        case .unknownChange: return startRead(call).map { .read($0) } ?? .none
        case .wakeUp(let wakeUp):
            // A wake-up about what the reply already contained changes nothing.
            if let growth = wakeUp.growth, call.request.cursor == growth.end { break }
            guard let reply = wakeUp.growth?.reply(to: call.request, isFresh: isFresh) else {
                return startRead(call).map { .read($0) } ?? .none
            }
            return deliver(reply, to: call, now)
        }
        if call.request.readsOnce || call.isOver(at: now) {
            return finish(call, .success(Delivery(.timedOut, cursor: call.request.cursor ?? .none)), now)
        }
        call.state = .waiting
        return .none
    }

    private mutating func deliver(_ reply: ReadReply, to call: PendingListen, _ now: Duration) -> NextStep {
        var reply = reply
        trails.receive(&reply, of: call.request, now: now)
        return finish(call, .success(reply.delivery), now)
    }

    private mutating func finish(_ call: PendingListen, _ outcome: Finish, _ now: Duration) -> NextStep {
        remove(call, now)
        return .finish(outcome)
    }
}
