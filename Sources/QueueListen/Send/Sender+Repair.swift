// After a failover: sends again what Redis has confirmed and lost.
//
// Replication is asynchronous, so a promoted replica may lack the last writes. On each new connection, and when a mailbox
// lacks a message that was confirmed, the sender compares the answers that Redis keeps with the sends that it remembers,
// and repeats those whose answers are missing, in their order, under their numbers: a send that Redis has takes no effect
// again. No other send begins meanwhile. One that is under way already cannot overtake them: Redis refuses it in its
// place (`behind`), or because its mailbox lacks an earlier message (`damaged`).
import CoordinationBase
import Hiredis

extension Sender {
    /// Begins to send again what Redis has lost.
    ///
    /// - Parameter count: the number of reasons for a repair of which the caller knows; with a later one the repair is under
    ///   way or done. `nil`: there is another reason.
    /// - Returns: the number of reasons so far; `nil` if there is nothing to send again.
    @discardableResult
    func repairLosses(since count: Int? = nil) -> Int? {
        state.withLock { state in
            if let count, count < state.repairCount { return state.repairCount }
            state.repairCount += 1
            state.places.forgetConfirmed()
            if state.isRepairing { return state.repairCount }
            if state.sends.isEmpty { return nil }
            state.isRepairing = true
            Task { await repair() }
            return state.repairCount
        }
    }

    private func repair() async {
        var sends: [ConfirmedSend] = []
        var messageCount = 0
        var count: Int
        repeat {
            count = state.withLock { state in
                state.places.forgetConfirmed()
                sends += state.sends.takeAll()
                return state.repairCount
            }
            let round = Round(count: count, missing: await findMissing(sends))
            messageCount += await check(&sends, round)
            // If there was a reason for another repair meanwhile, it begins with the first send again.
        } while !endRepair(sends, after: count)
        if messageCount > 0 { instruments.repaired(messageCount) }
    }

    /// One pass over the remembered sends. It ends early when there is a reason for another repair.
    private struct Round {
        /// The number of reasons for a repair.
        var count: Int
        /// The sends whose answers Redis lacks.
        var missing: MissingConfirmations
    }

    /// Checks sends in their order, and removes those that cannot be sent again.
    ///
    /// - Returns: the number of messages that were stored again.
    private func check(_ sends: inout [ConfirmedSend], _ round: Round) async -> Int {
        var messageCount = 0
        var checked: [ConfirmedSend] = []
        for (position, send) in sends.enumerated() {
            if !isCurrent(round) {
                checked += sends[position...]
                break
            }
            switch round.missing.contains(position) ? await sendAgain(send, round) : .isThere {
            case .isThere:
                forgetPlaces(of: send)
                checked.append(send)
            case .interrupted: checked.append(send)
            case .sent(let again):
                checked.append(again)
                messageCount += send.encodedSend.recipients.indices.reduce(0) { $0 + send.encodedSend.count(of: $1) }
            case .failed: break
            }
        }
        sends = checked
        return messageCount
    }

    /// Forgets the places of a send that another process may have sent again under the same id. They are others then, which a
    /// later send must not take for a loss.
    private func forgetPlaces(of send: ConfirmedSend) {
        guard send.request.hasSharedID else { return }
        state.withLock { state in
            for (position, result) in send.results.enumerated() {
                let last = result.firstIndex + send.encodedSend.count(of: position) - 1
                state.messages.forget(send.encodedSend.recipients[position], ifAt: last, epoch: result.epoch)
            }
        }
    }

    private func isCurrent(_ round: Round) -> Bool { state.withLock { $0.repairCount == round.count } }

    /// Ends the repair, unless there is a reason for another one.
    private func endRepair(_ sends: [ConfirmedSend], after count: Int) -> Bool {
        let waiting = state.withLock { state -> [AsyncStream<Never>.Continuation]? in
            guard state.repairCount == count else { return nil }
            // What was confirmed meanwhile was confirmed by the server of this round.
            let later = state.sends.takeAll()
            for send in sends + later { state.sends.append(send) }
            state.isRepairing = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting ?? [] { continuation.finish() }
        return waiting != nil
    }

    /// Returns when the repair has ended, the time has come, or the task was cancelled.
    func untilRepaired(before end: Duration) async {
        let (ends, continuation) = AsyncStream.makeStream(of: Never.self)
        let isRepairing = state.withLock { state in
            if state.isRepairing { state.waiting.append(continuation) }
            return state.isRepairing
        }
        guard isRepairing else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await _ in ends {} }
            group.addTask { [clock] in try? await clock.sleep(max(.zero, end - clock.now())) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Looks for sends whose answers Redis lacks. Where it does not reply, they count as missing.
    private func findMissing(_ sends: [ConfirmedSend]) async -> MissingConfirmations {
        let needed = state.withLock { max($0.maxAttempts, 128) }
        let missing = await MissingConfirmations(among: sends, needed: needed) { part in
            let commands = part.map { send -> RedisCommand in
                var field = PackedBytes()
                field.uint16(send.request.place ?? 0)
                return ["HGET", .string(partition.keys.sent(send.request.sender)), .bytes(field.bytes)]
            }
            let replies = try? await redis.pipeline(commands, timeout: configuration.callTimeout)
            return part.enumerated().map { position, send in
                // A stored answer begins with the number of its request.
                var answer = ByteReader(replies?[position].bytes ?? [])
                return answer.number() ?? 0 < send.request.number
            }
        }
        guard let missing else { preconditionFailure("each question has an answer") }
        return missing
    }

    // MARK: Send again

    private enum Repetition {
        /// Redis has it.
        case isThere
        case sent(ConfirmedSend)
        /// It is refused, or its answer may have expired, so that it could be sent twice.
        case failed
        /// There is a reason for another repair.
        case interrupted
    }

    /// Sends again what Redis has lost.
    private func sendAgain(_ send: ConfirmedSend, _ round: Round) async -> Repetition {
        let recipients = send.encodedSend.recipients
        // It will have another place in the mailboxes, also if that is not confirmed.
        let known = state.withLock { state in
            defer { for recipient in recipients { state.messages.forget(recipient) } }
            return state.messages.cursors(of: recipients)
        }
        let repetition = await repeatUntilAnswered(send, round)
        if case .failed = repetition {
            // The next send to the mailbox reports the loss.
            state.withLock { state in
                for (recipient, cursor) in zip(recipients, known) where cursor != .none {
                    state.messages.record(cursor, in: recipient)
                }
            }
        }
        return repetition
    }

    private func repeatUntilAnswered(_ send: ConfirmedSend, _ round: Round) async -> Repetition {
        var pause = Duration.milliseconds(20)
        while isCurrent(round) {
            guard clock.now() < send.repeatableUntil else { return .failed }
            do {
                switch try await repeatOnce(send) {
                case let repetition?: return repetition
                case nil: continue
                }
            } catch {
                guard QueueListenError(error).isTransient else { return .failed }
            }
            do { try await clock.sleep(pause) } catch { return .failed }
            pause = min(pause * 2, .seconds(1))
        }
        return .interrupted
    }

    /// Repeats a request.
    ///
    /// - Returns: `nil` if it must be repeated at once.
    private func repeatOnce(_ send: ConfirmedSend) async throws -> Repetition? {
        var request = send.request
        let encodedSend = send.encodedSend.aged(by: clock.now() - send.sentAt)
        // A part of a cross-partition send keeps its time limit. Other requests have none, because they have numbers.
        request.mode = .part(until: Self.noDeadline)
        if case .part = send.request.mode {
            let time = try await serverTime(until: clock.now() + configuration.callTimeout)
            request.mode = .part(until: time + RecordedSends.deliveryWindow)
        }
        let tags = encodedSend.newTags()
        // A mailbox that Redis has lost as a whole gets the epoch that its readers know. The tag is not that of an empty
        // mailbox, so that the script looks.
        let epochs = send.results.map { Cursor(epoch: $0.epoch, index: 0, tag: 1) }
        let header = request.header(encodedSend, in: partition, after: 0, tags, epochs)
        let began = clock.now()
        let reply = try await redis.script(
            Scripts.send, keys: encodedSend.keys(in: partition, sender: request.sender),
            arguments: [.bytes(header)] + encodedSend.arguments(), timeout: configuration.callTimeout / 2)
        if let bytes = reply.bytes, let results = Self.results(bytes, of: encodedSend) {
            var again = send
            (again.results, again.confirmedAt) = (results, clock.now())
            again.repeatableUntil = began + answerLifetime(of: send.request)
            state.withLock { $0.messages.record(again, tags) }
            return .sent(again)
        }
        switch reply.array?.first?.string {
        case "ok", "stale": return .isThere
        case "again", "late": return nil
        case "damaged":
            guard let number = reply.array?.last?.integer, encodedSend.recipients.indices.contains(number - 1) else {
                return .failed
            }
            try await reportLoss(
                in: encodedSend.recipients[number - 1], known: .none, until: clock.now() + configuration.callTimeout)
            return nil
        default: return .failed
        }
    }

    /// A time that does not come, exact in the scripts.
    private static var noDeadline: Int { 1 << 52 }
}
