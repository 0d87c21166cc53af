// A task that sends to mailboxes and reads as their devices.
@testable import CoordinationBase
@testable import QueueListen

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A task of a process that sends and reads until the world closes, and then reads what is left.
///
/// `@unchecked`: a world is used by one thread.
final class MailTask: @unchecked Sendable {
    let owner: MailProcess
    private let mail: MailWorld
    unowned let world: World
    private let name: String
    private var lastSend = 0
    /// The index and the tag of the last message that was confirmed to this task.
    private var last: [String: (index: Int, tag: UInt64)] = [:]

    init(_ number: Int, of owner: MailProcess) {
        (self.owner, mail, world) = (owner, owner.mail, owner.mail.world)
        name = "\(owner.process.number).\(number)"
    }

    func begin() { owner.begin { await self.run() } }

    private func run() async {
        await setLimits()
        while world.isOpen, !owner.client.isOver {
            await owner.pause(100...400_000)
            switch Int.random(in: 0..<12, using: &world.random) {
            case 0..<4: await read(mail.seats.filter(\.isFree).randomElement(using: &world.random))
            // Another process may read as the same device: the newer one continues.
            case 4: await read(mail.seats.randomElement(using: &world.random))
            case 5: await receive(for: world.random.time(500_000...20_000_000))
            case 6 where world.random.isOne(in: 4): await forget()
            case 7: await sendLater()
            case 8 where mail.plan.hasRecurring == true: await sendAgain()
            case 9 where mail.book != nil: await work(mail.book!)
            default: await send()
            }
        }
        while !mail.isDrained, !owner.client.isOver {
            await read(mail.seats.filter { $0.isFree && !mail.isDrained($0) }.randomElement(using: &world.random))
            await receive(for: 3_000_000)
            if let book = mail.book, !mail.areJobsDone {
                try? await owner.office.mailbox(JobBook.mailbox).resumeWork()
                await WorkerRun(owner, book).run(for: 3_000_000)
            }
            if mail.plan.hasRecurring == true { await endRecurring() }
            await owner.pause(10_000...300_000)
        }
    }

    /// The first task of a world sets the limits of mailboxes.
    private func setLimits() async {
        guard name == "0.0" else { return }
        for name in mail.recipients {
            if let limits = mail.limits(of: name) { try? await owner.office.mailbox(name).setLimits(limits) }
        }
    }

    private func receive(for time: Time) async {
        guard let inbox = mail.inbox, inbox.owner?.isDead ?? true, !mail.isInboxDrained || world.isOpen else { return }
        await ReceiverRun(owner, inbox).run(for: time)
    }

    private func forget() async {
        guard let seat = mail.seats.randomElement(using: &world.random) else { return }
        world.note("\(owner.process.name) forgets \(seat.device) of \(seat.mailbox)")
        guard let mailbox = try? owner.office.mailbox(seat.mailbox) else { return }
        if world.random.isOne(in: 2) {
            _ = try? await mailbox.forget(device: seat.device)
        } else if let device = try? await mailbox.devices().first(where: { $0.name == seat.device }) {
            await owner.pause(100...100_000)
            _ = try? await mailbox.forget(device)
        }
    }

    // MARK: Send

    private func send() async {
        lastSend += 1
        let text = "\(name)-\(lastSend)"
        let count = Int.random(in: 1...mail.plan.boxes, using: &world.random)
        let boxes = Array(mail.recipients.shuffled(using: &world.random).prefix(count))
        let messages = (0..<Int.random(in: 1...3, using: &world.random)).map { message("\(text).\($0)") }
        let id = world.random.isOne(in: 2) ? "send \(text)" : nil
        await send(text, messages, to: boxes, id: id)
    }

    /// Sends messages to mailboxes, also again under the id if it is unknown whether they were sent.
    ///
    /// - Parameter text: what the bodies begin with.
    func send(_ text: String, _ messages: [Message], to boxes: [String], id: String?) async {
        for message in messages where message.collapseKey == nil {
            mail.attempted.append((message.content, boxes.map(mail.key)))
        }
        var mayHaveRun = false
        for _ in 0..<3 {
            owner.sending += 1
            do throws(QueueListenError) {
                let begun = world.now
                let receipt = try await owner.office.send(messages, to: boxes, id: id)
                owner.sending -= 1
                confirm(receipt, messages, boxes, begun)
                // A send that is repeated under its id has no second effect, and the same receipt.
                guard let id, world.random.isOne(in: 4) else { return }
                if world.random.isOne(in: 3) { return await misuse(id, text, boxes) }
                mayHaveRun = true
            } catch {
                owner.sending -= 1
                mayHaveRun = mayHaveRun || error.mayHaveRun
                world.note("\(owner.process.name) cannot send \(text): \(error)")
                if !mayHaveRun { mail.checkRefused(messages) }
                if id == nil || owner.client.isOver { break }
            }
            await owner.pause(1000...2_000_000)
        }
        if !mayHaveRun { for message in messages { mail.ledger.refused.insert(message.content) } }
    }

    /// Schedules a send, and may cancel it.
    private func sendLater() async {
        lastSend += 1
        let text = "\(name)-\(lastSend) later"
        let count = Int.random(in: 1...mail.plan.boxes, using: &world.random)
        let boxes = Array(mail.recipients.shuffled(using: &world.random).prefix(count))
        let id = "later \(text)"
        let delay = Duration.microseconds(world.random.time(0...6_000_000))
        let isCancelled = world.random.isOne(in: 4)
        mail.attempted.append((text, boxes.map(mail.key)))
        owner.sending += 1
        defer { owner.sending -= 1 }
        for _ in 0..<3 {
            do throws(QueueListenError) {
                var message = Message(text: text)
                message.orderKey = mail.book == nil ? nil : JobBook.orderKey(of: text)
                let send = try await owner.office.send([message], to: boxes, after: delay, id: id)
                mail.due[text] = Int((send.time.timeIntervalSince1970 * 1000).rounded())
                if isCancelled { return await cancel(id, text) }
                mail.confirmed.append((text, boxes.map(mail.key), owner))
                // Repeated, it has no second effect.
                if world.random.isOne(in: 2) { return }
            } catch {
                world.note("\(owner.process.name) cannot schedule \(text): \(error)")
                if owner.client.isOver { return }
            }
            await owner.pause(1000...2_000_000)
        }
    }

    private func cancel(_ id: String, _ text: String) async {
        await owner.pause(100...4_000_000)
        let losses = world.judge.losses
        let isCancelled = (try? await owner.office.cancelScheduledSend(id)) ?? false
        // What was sent and lost can be cancelled, and a lost cancellation is repeated only by a process that lives.
        guard isCancelled, world.judge.losses == 0, losses == 0 else { return }
        mail.ledger.cancelled.insert(text)
        for (box, texts) in mail.ledger.texts where texts[text] != nil {
            world.violation("\(box) has \"\(text)\", which was cancelled")
        }
    }

    /// Declares a recurring send, perhaps repeatedly, and cancels it after a while.
    private func sendAgain() async {
        lastSend += 1
        let text = "\(name)-\(lastSend) again"
        let names = mail.recipients.filter { $0 != Inbox.mailbox }.shuffled(using: &world.random)
        let boxes = Array(names.prefix(Int.random(in: 1...names.count, using: &world.random)))
        let id = "again \(text)"
        mail.recurring[id] = Recurring(text: text, boxes: boxes.map(mail.key))
        owner.sending += 1
        defer { owner.sending -= 1 }
        for _ in 0..<Int.random(in: 1...3, using: &world.random) {
            do throws(QueueListenError) {
                var message = Message(text: text)
                message.orderKey = mail.book == nil ? nil : JobBook.orderKey(of: text)
                try await owner.office.send([message], to: boxes, recurring: .every(.seconds(1)), id: id)
            } catch { world.note("\(owner.process.name) cannot declare \(text): \(error)") }
            if owner.client.isOver { return }
            await owner.pause(1000...2_000_000)
        }
        let losses = world.judge.losses
        let isCancelled = (try? await owner.office.cancelScheduledSend(id)) ?? false
        // A failover may lose the cancellation with its process.
        if isCancelled, losses == 0, world.judge.losses == 0 { mail.recurring[id]!.cancelledAt = world.serverTime }
    }

    /// Cancels all recurring sends: those of processes that have died, and those whose cancellation Redis has lost.
    private func endRecurring() async {
        for send in (try? await owner.office.scheduledSends()) ?? [] where send.recurrence != nil {
            _ = try? await owner.office.cancelScheduledSend(send.id)
        }
    }

    /// Sends another message under an id that is in use: it is refused, unless Redis has lost the first send.
    private func misuse(_ id: String, _ text: String, _ boxes: [String]) async {
        if world.judge.losses > 0 { return }
        let other = "\(text)\(MailLedger.misuse)"
        mail.ledger.refused.insert(other)
        owner.sending += 1
        do throws(QueueListenError) {
            _ = try await owner.office.send([Message(text: other)], to: boxes, id: id)
            if world.judge.losses == 0 { world.violation("\"\(id)\" is the id of two sends") }
        } catch {
            world.note("\(owner.process.name) cannot use \"\(id)\" again: \(error.code)")
        }
        owner.sending -= 1
    }

    private func message(_ text: String) -> Message {
        var message = Message(
            text: text, ttl: world.random.isOne(in: 6) ? .microseconds(world.random.time(300_000...6_000_000)) : nil,
            collapseKey: world.random.isOne(in: 6) ? "key \(Int.random(in: 0..<2, using: &world.random))" : nil)
        message.orderKey = mail.book == nil ? nil : JobBook.orderKey(of: text)
        return message
    }

    private func confirm(_ receipt: Receipt, _ messages: [Message], _ boxes: [String], _ begun: Time) {
        world.judge { $0.hasChecked() }
        for box in boxes {
            let key = mail.key(of: box)
            guard let range = receipt.indices[box], range.count == messages.count else {
                world.violation("the receipt of \(receipt.id) lacks \(box)")
                continue
            }
            // A later message of the same send may have replaced one with a collapse key at once.
            for (index, message) in zip(range, messages) where message.collapseKey == nil {
                let tags = mail.ledger.texts[key]?[message.content] ?? []
                if !tags.contains(where: { mail.ledger.stored[key]![$0]!.entry.index == index }) {
                    world.violation("\(key) has no \"\(message.content)\" at \(index), which was confirmed")
                }
            }
            if let message = messages.last, message.collapseKey == nil {
                checkKnown(message.content, key, begun)
            } else {
                // The process knows of this message instead, which may be of another epoch.
                owner.known[key] = nil
            }
            let items = mail.ledger.stored[key] ?? [:]
            if let (index, tag) = last[box], items[tag]?.isLost == false, index > range.upperBound {
                world.violation("\(key): \(name) has sent \(range.upperBound) after \(index)")
            }
            if range.upperBound > last[box]?.index ?? 0 || last[box].map({ items[$0.tag]?.isLost ?? true }) ?? false,
                let item = items.first(where: { $0.value.entry.index == range.upperBound && !$0.value.isLost })
            {
                last[box] = (range.upperBound, item.key)
            }
        }
        for message in messages where message.collapseKey == nil {
            mail.confirmed.append((message.content, boxes.map(mail.key), owner))
        }
    }

    /// A process that sends to a mailbox again lets it report the loss of the last message that was confirmed to it.
    private func checkKnown(_ text: String, _ key: String, _ begun: Time) {
        let items = mail.ledger.stored[key] ?? [:]
        guard let tag = mail.ledger.texts[key]?[text]?.last, let item = items[tag], !item.isLost else { return }
        if let (earlier, at) = owner.known[key], at < begun, item.at >= begun, let last = items[earlier], last.isLost,
            mail.ledger.boxes[key]?.record?.limits == nil, last.epoch == item.epoch,
            item.entry.index < last.entry.index + 30,
            mail.ledger.texts[key]?[last.entry.text]?.allSatisfy({ items[$0]!.isLost }) ?? true
        {
            world.violation(
                "\(key): \(owner.process.name) has sent \"\(text)\", and the loss of \(last.entry.index) is not reported"
            )
        }
        if mail.ledger.runs["\(key) \(text)"] == 1, item.at >= begun { owner.known[key] = (tag, world.now) }
    }

    // MARK: Read

    private func read(_ seat: Seat?) async {
        guard let seat, let mailbox = try? owner.office.mailbox(seat.mailbox) else { return }
        seat.owner = owner.process
        defer { if seat.owner === owner.process { seat.owner = nil } }
        var cursor = world.random.isOne(in: 2) ? nil : seat.cursor
        // A reader acknowledges nothing by reading.
        let requiresDevice = world.isOpen && world.random.isOne(in: 2)
        let reader =
            world.random.isOne(in: 4)
            ? try? mailbox.reader(device: seat.device, requiresDevice: requiresDevice) : nil
        let end = world.now + world.random.time(100_000...15_000_000)
        repeat {
            let longest: Time = world.random.isOne(in: 4) ? 40_000_000 : 6_000_000
            let timeout: Duration? = world.isOpen ? .microseconds(world.random.time(0...longest)) : .zero
            let state = mail.ledger.boxes[seat.key]?.devices[seat.device]
            let call = mail.begins(
                MailCall(
                    seat: seat, process: owner, after: cursor, began: world.now,
                    beganAtServer: world.serverTime, timeout: timeout,
                    acknowledged: state?.acknowledged, number: seat.calls.count, losses: world.judge.losses))
            do throws(QueueListenError) {
                let limit = Int.random(in: 1...6, using: &world.random)
                let delivery =
                    if let reader {
                        try await reader.listen(after: cursor, limit: limit, timeout: timeout)
                    } else {
                        try await mailbox.listen(after: cursor, device: seat.device, limit: limit, timeout: timeout)
                    }
                mail.returned(call, delivery)
                cursor = delivery.cursor
                if case .superseded = delivery.status { return }
                if let reader, world.random.isOne(in: 2) { _ = try? await reader.acknowledge(delivery.cursor) }
            } catch {
                mail.calls[call] = nil
                world.note("\(owner.process.name) cannot read \(seat.mailbox): \(error)")
                if owner.client.isOver || error.code == .unknownDevice { return }
            }
            await owner.pause(100...50_000)
        } while !owner.client.isOver && (world.isOpen ? world.now < end : !mail.isDrained(seat))
    }
}

extension MailWorld {
    /// A send has certainly failed.
    func checkRefused(_ messages: [Message]) {
        for message in messages {
            for (box, texts) in ledger.texts where texts[message.content] != nil {
                world.violation("\(box) has \"\(message.content)\", whose send was refused")
            }
        }
    }
}

extension Message {
    /// The body as text.
    fileprivate var content: String { String(decoding: body, as: UTF8.self) }
}
