// A call of `listen`, and whether what it returns follows what the device has received.
@testable import QueueListen

/// A call of `listen` under way.
struct MailCall {
    var seat: Seat
    var process: MailProcess
    var after: Cursor?
    /// When it began, in the world's time and by the server's clock in milliseconds.
    var began: Time
    var beganAtServer: Int
    var timeout: Duration?
    /// What the device had acknowledged; `nil` if it was not known.
    var acknowledged: Int?
    /// The number of calls as the device before it.
    var number: Int
    /// How often the server had lost data when it began.
    var losses: Int
}

extension MailWorld {
    /// The call has returned a delivery.
    func returned(_ number: Int, _ delivery: Delivery) {
        guard let call = calls.removeValue(forKey: number) else { return }
        world.judge { $0.hasChecked() }
        let seat = call.seat
        world.note(
            "\(call.process.process.name) reads \(seat.mailbox) as \(seat.device) after \(call.after?.index ?? -1): \(delivery.messages.map(\.index)), \(delivery.skipped) skipped, at \(delivery.cursor.index)"
        )
        let isRewound = rewind(call)
        switch delivery.status {
        case .messages(let messages): checkMessages(call, delivery, messages, isRewound: isRewound)
        case .timedOut: checkTimeout(call, delivery)
        case .superseded:
            let others = seat.calls.enumerated().filter {
                $0.offset != call.number && $0.element > call.began - 30_000_000
            }
            if others.isEmpty { fail(call, "was superseded by no other call") }
            return
        case .reset, .forked, .truncated:
            if lastRead(call)?.lastGap ?? -1 < call.began { fail(call, "has a gap that Redis has not replied") }
            if case .forked = delivery.status, let after = call.after, hasReceivedWhatIsLost(call, after) {
                fail(call, "reports a fork, and its process remembers what is lost")
            }
            seat.mustSkip = []
            seat.gaps[call.process.process.number] = world.now
            seat.repeated[call.process.process.number] = nil
            seat.restart = max(seat.restart, delivery.cursor.index)
        }
        seat.cursor = delivery.cursor
    }

    func fail(_ call: MailCall, _ text: String) {
        let after = call.after.map { "after \($0.index)" } ?? "without a cursor"
        world.violation("\(call.seat.key): listen of \(call.seat.device) \(after) \(text)")
    }

    /// The last read of the process of a call, as its device.
    private func lastRead(_ call: MailCall) -> MailLedger.Read? {
        ledger.reads["\(call.process.process.number) \(call.seat.key) \(call.seat.device)"]
    }

    // MARK: Messages

    /// The messages up to a position when it was received, the last one first.
    private func history(_ seat: Seat, upTo position: Cursor) -> [(tag: UInt64, item: MailLedger.Stored)] {
        var history: [(UInt64, MailLedger.Stored)] = []
        var tag = position.tag
        while let item = ledger.stored[seat.key]?[tag], history.count < 1000 {
            history.append((tag, item))
            tag = item.previous
        }
        return history
    }

    /// Whether the process of a call has received a message as its device, and certainly remembers it.
    private func remembers(_ tag: UInt64, _ call: MailCall) -> Bool {
        guard let (process, at) = call.seat.received[tag] else { return false }
        // A gap, also one that another call was told of, lets it forget what was before.
        return process == call.process.process.number && at + 25_000_000 > world.now
            && at > call.seat.gaps[process] ?? -1
    }

    /// Whether the process of a call has received all messages up to its position that Redis has lost.
    private func hasReceivedWhatIsLost(_ call: MailCall, _ position: Cursor) -> Bool {
        let lost = history(call.seat, upTo: position).prefix { $0.item.isLost }
        guard let first = lost.last?.item, first.previous != 0, let record = ledger.boxes[call.seat.key]?.record else {
            return false
        }
        // Limits, or another process that has read as the device, may have deleted what this one has not received.
        if record.limits != nil || record.from >= first.entry.index { return false }
        return lost.allSatisfy { remembers($0.tag, call) }
    }

    /// After a loss, reading begins before the position of a call, and what was received up to it is skipped.
    ///
    /// - Returns: whether Redis has lost the position.
    private func rewind(_ call: MailCall) -> Bool {
        let seat = call.seat
        let process = call.process.process.number
        if call.after == nil || call.after != seat.cursor || process != seat.lastProcess { seat.mustSkip = [] }
        seat.lastProcess = process
        // Without a cursor, the call has got the position that the device had acknowledged.
        guard let after = call.after ?? seat.cursor, ledger.stored[seat.key]?[after.tag]?.isLost ?? false else {
            return false
        }
        for (tag, item) in history(seat, upTo: after) {
            seat.repeated[call.process.process.number, default: [:]][item.entry.text] = tag
            // One that has expired for the server, or was replaced, was skipped if it was read again.
            if item.entry.life == 0, item.entry.key.isEmpty, remembers(tag, call), call.after == seat.cursor {
                seat.mustSkip.insert(item.entry.text)
            }
        }
        return true
    }

    private func checkMessages(
        _ call: MailCall, _ delivery: Delivery, _ messages: [ReceivedMessage], isRewound: Bool
    ) {
        let (seat, cursor) = (call.seat, delivery.cursor)
        let repeated = seat.repeated[call.process.process.number] ?? [:]
        let start = cursor.index - messages.count - delivery.skipped
        let device = ledger.boxes[seat.key]?.devices[seat.device]
        let acknowledged = max(device?.acknowledged ?? 0, lastRead(call)?.acknowledged ?? 0)
        if let after = call.after {
            if cursor.epoch != after.epoch { return fail(call, "continues in another epoch") }
            if start < after.index && !isRewound || start > max(after.index, acknowledged) {
                fail(call, "continues after \(start)")
            }
        } else if !isRewound, let before = call.acknowledged, before >= 0, device?.since ?? .max < call.began,
            start < before && call.losses == world.judge.losses || start > max(acknowledged, before)
        {
            fail(call, "continues after \(start), acknowledged were \(before), now \(acknowledged)")
        }
        var expected = messages.reversed()[...]
        var tag = cursor.tag
        for index in stride(from: cursor.index, to: start, by: -1) {
            guard let item = ledger.stored[seat.key]?[tag], item.entry.index == index else {
                return fail(call, "continues with \(index), which does not follow")
            }
            if let message = expected.first, message.index == index {
                expected = expected.dropFirst()
                check(message, item, call)
                if seat.mustSkip.contains(item.entry.text), let earlier = repeated[item.entry.text],
                    remembers(earlier, call)
                {
                    fail(call, "delivers \"\(item.entry.text)\" again")
                }
                seat.received[tag] = (call.process.process.number, world.now)
            } else if repeated[item.entry.text] == nil {
                checkSkipped(item, call)
            }
            tag = item.previous
        }
        if !expected.isEmpty { fail(call, "has messages out of order") }
        if let after = call.after, start == after.index, tag != after.tag {
            fail(call, "continues with \(start + 1), which does not follow the message that it has seen")
        }
    }

    private func check(_ message: ReceivedMessage, _ item: MailLedger.Stored, _ call: MailCall) {
        let entry = item.entry
        if message.text != entry.body || message.id != entry.id { fail(call, "has \(message.id) for \(entry.id)") }
        if entry.life > 0, entry.sent + entry.life <= call.beganAtServer, world.plan.faults.clockSteps == 0 {
            fail(call, "has message \(entry.index), which had expired")
        }
    }

    private func checkSkipped(_ item: MailLedger.Stored, _ call: MailCall) {
        let entry = item.entry
        let isSkipped = item.isReplaced || entry.isSkipped(at: world.serverTime)
        if !isSkipped, entry.key.isEmpty, world.plan.faults.clockSteps == 0 || entry.life == 0 {
            fail(call, "has skipped message \(entry.index)")
        }
    }

    // MARK: Waiting

    private func checkTimeout(_ call: MailCall, _ delivery: Delivery) {
        guard let timeout = call.timeout else { return fail(call, "has timed out without a timeout") }
        let deadline = call.began + timeout.microseconds
        if world.now < deadline { fail(call, "has timed out too early") }
        // A read that is under way at the deadline is the last one.
        let read = lastRead(call)?.at ?? 0
        if read < call.began { fail(call, "has timed out without a read") }
        if hasMessage(after: delivery.cursor, call.seat, before: min(deadline, read)) {
            fail(call, "has timed out, and there was a message")
        }
    }

    /// Whether a mailbox has a message for a reader that was stored before a time.
    private func hasMessage(after cursor: Cursor, _ seat: Seat, before time: Time) -> Bool {
        guard let record = ledger.boxes[seat.key]?.record, cursor.epoch == record.epoch else { return false }
        let now = world.serverTime + 1000
        return record.entries.contains {
            $0.index > cursor.index && !$0.isSkipped(at: now) && ledger.stored[seat.key]![$0.tag]!.at < time
        }
    }

    /// Finds calls that sleep although there is a message.
    func checkSleepers() {
        let patience: Time = 8_000_000
        for number in calls.keys.sorted() {
            let call = calls[number]!
            guard call.process.isCalm(for: patience), call.began + patience < world.now,
                let record = ledger.boxes[call.seat.key]?.record
            else { continue }
            let start = call.after ?? Cursor(epoch: record.epoch, index: record.last, tag: 0)
            if hasMessage(after: start, call.seat, before: world.now - patience) {
                fail(call, "sleeps, and there is a message")
                calls[number] = nil
            }
        }
    }
}
