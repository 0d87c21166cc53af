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
        switch delivery.status {
        case .messages(let messages): checkMessages(call, delivery, messages)
        case .timedOut: checkTimeout(call, delivery)
        case .superseded:
            let others = seat.calls.enumerated().filter {
                $0.offset != call.number && $0.element > call.began - 30_000_000
            }
            if others.isEmpty { fail(call, "was superseded by no other call") }
            return
        case .reset, .forked, .truncated:
            if lastRead(call)?.lastGap ?? -1 < call.began { fail(call, "has a gap that Redis has not replied") }
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

    private func checkMessages(_ call: MailCall, _ delivery: Delivery, _ messages: [ReceivedMessage]) {
        let (seat, cursor) = (call.seat, delivery.cursor)
        let start = cursor.index - messages.count - delivery.skipped
        let device = ledger.boxes[seat.key]?.devices[seat.device]
        let acknowledged = max(device?.acknowledged ?? 0, lastRead(call)?.acknowledged ?? 0)
        if let after = call.after {
            if cursor.epoch != after.epoch { return fail(call, "continues in another epoch") }
            if start < after.index || start > max(after.index, acknowledged) {
                fail(call, "continues after \(start)")
            }
        } else if let before = call.acknowledged, before >= 0, device?.since ?? .max < call.began,
            start < before || start > max(acknowledged, before)
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
                seat.received.insert(tag)
            } else {
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
        if message.text != entry.text || message.id != entry.id { fail(call, "has \(message.id) for \(entry.id)") }
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
