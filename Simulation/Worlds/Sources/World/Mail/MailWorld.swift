// The mailboxes of a world: who reads which of them, and what was sent.
import SimulatedRedis

@testable import CoordinationBase
@testable import Hiredis
@testable import QueueListen

/// The size of the part of a world that uses mailboxes.
public struct MailPlan: Sendable, Codable, Equatable {
    /// The number of tasks of each process that send and read.
    public var tasks = 0
    /// The number of mailboxes, and of devices of each.
    public var (boxes, devices) = (3, 2)
    /// The number of partitions.
    public var partitions = 1
    /// Whether some mailboxes have limits: one refuses what does not fit, and one drops its oldest messages.
    public var hasLimits = true
    /// Whether there is a mailbox that receivers read.
    public var hasInbox = true
    /// Whether some sends recur; `nil` for no.
    public var hasRecurring: Bool? = true
    /// Whether there is a mailbox that workers share; `nil` for no.
    public var hasWorkers: Bool? = true
    /// Whether some jobs have an effect in Redis, a device reads the mailbox of the workers too, and in some worlds it drops
    /// its oldest messages; `nil` for no.
    public var hasEffects: Bool? = true
}

/// A recurring send: what is sent to whom, and when it was cancelled, in milliseconds by the server's clock.
struct Recurring {
    var text: String
    var boxes: [String]
    var cancelledAt: Int?
}

/// A device of a mailbox: the application lets one task at a time read as it.
///
/// `@unchecked`: a world is used by one thread.
final class Seat: @unchecked Sendable {
    let mailbox: String
    let device: String
    /// The key of the mailbox's state.
    let key: String
    /// The process that reads as this device.
    weak var owner: SimulatedProcess?
    /// The position after what was delivered last.
    var cursor: Cursor?
    /// The tags of the messages that were delivered to the application, each with the process and the time.
    var received: [UInt64: (process: Int, at: Time)] = [:]
    /// When calls have returned a gap last, by process.
    var gaps: [Int: Time] = [:]
    /// What the device had received when Redis lost its position, with the tags then, by process: what it may skip since.
    var repeated: [Int: [String: UInt64]] = [:]
    /// What no call of the process that has called last may deliver again, because all calls since have continued after the
    /// one before.
    var mustSkip: Set<String> = []
    var lastProcess = -1
    /// The index after which reading has begun again, after a gap.
    var restart = 0
    /// When calls of listen have begun, for each of them.
    var calls: [Time] = []

    init(_ mailbox: String, _ device: String, key: String) {
        (self.mailbox, self.device, self.key) = (mailbox, device, key)
    }

    var isFree: Bool { owner?.isDead ?? true }
}

/// The mailboxes of a world.
///
/// `@unchecked`: a world is used by one thread.
final class MailWorld: @unchecked Sendable {
    unowned let world: World
    let plan: MailPlan
    let executor: WorldExecutor
    let runtime: LibraryRuntime
    let namespace: Namespace
    let seats: [Seat]
    let inbox: Inbox?
    /// What workers do; `nil` without them.
    let book: JobBook?
    /// Whether receivers store their cursors in a key of their own.
    let storesCursor: Bool
    /// Whether the mailbox of the workers drops its oldest messages when it is full.
    let dropsJobs: Bool
    var ledger = MailLedger()
    /// The messages that were confirmed: what was sent, the recipients, and the sender.
    var confirmed: [(text: String, boxes: [String], sender: MailProcess)] = []
    /// All messages without a collapse key, with their recipients.
    var attempted: [(text: String, boxes: [String])] = []
    /// When scheduled messages are due, in milliseconds by the server's clock.
    var due: [String: Int] = [:]
    /// By id.
    var recurring: [String: Recurring] = [:]
    /// The calls of listen under way, by number.
    var calls: [Int: MailCall] = [:]
    private var lastCall = 0

    init(in world: World, seed: UInt64) {
        (self.world, plan, executor) = (world, world.plan.mail, world.executor)
        runtime = LibraryRuntime(seed: seed, executor)
        inbox = plan.hasInbox ? Inbox() : nil
        storesCursor = seed.isMultiple(of: 2)
        let namespace = Namespace.ofMailboxes("world", partitions: plan.partitions)
        self.namespace = namespace
        book = plan.hasWorkers == true ? JobBook(namespace, counted: plan.hasEffects == true) : nil
        let devices = (0..<plan.devices).map { "device \($0)" }
        let auditors = book?.counted == true ? [(JobBook.mailbox, "audit")] : []
        dropsJobs = seed % 3 == 0
        seats = ((0..<plan.boxes).flatMap { number in devices.map { ("box \(number)", $0) } } + auditors).map {
            Seat($0, $1, key: MailboxKeys(namespace, partition: namespace.partition(of: $0)).box($0))
        }
    }

    var configuration: PostOfficeConfiguration {
        var configuration = PostOfficeConfiguration()
        configuration.partitions = plan.partitions
        configuration.takeOverAfter = .seconds(4)
        configuration.repairTime = MailLedger.repairTime
        return configuration
    }

    /// The key of a mailbox's state.
    func key(of mailbox: String) -> String {
        MailboxKeys(namespace, partition: namespace.partition(of: mailbox)).box(mailbox)
    }

    /// The mailboxes to which tasks send.
    var recipients: [String] {
        Set(seats.map(\.mailbox)).sorted() + (inbox == nil ? [] : [Inbox.mailbox])
            + (book == nil ? [] : [JobBook.mailbox])
    }

    /// The limits of a mailbox; `nil` for the usual ones.
    func limits(of mailbox: String) -> MailboxLimits? {
        let isOfJobs = mailbox == JobBook.mailbox && dropsJobs && book?.counted == true
        guard plan.hasLimits, mailbox == "box 1" || mailbox == "box 2" || isOfJobs else { return nil }
        var limits = MailboxLimits()
        limits.maxMessages = 12
        limits.whenFull = mailbox == "box 1" ? .reject : .dropOldest
        if mailbox == "box 2" { limits.deviceTTL = .seconds(20) }
        return limits
    }

    // MARK: Events

    /// Lets the library go on after an event.
    func goOn() {
        executor.drain()
        for violation in ledger.takeViolations() { world.violation(violation) }
    }

    /// Adds a post office and its tasks to a process.
    func add(to process: SimulatedProcess) {
        do {
            let mail = try MailProcess(of: process, in: self)
            process.mail = mail
            // A scenario begins other tasks.
            if world.exploration != nil { return }
            for number in 0..<plan.tasks { MailTask(number, of: mail).begin() }
            if let services = world.plan.services { try ServiceProcess(of: mail, services).begin(services) }
        } catch {
            world.violation("no post office: \(error)")
        }
    }

    /// A replica is the master.
    func promoted() {
        ledger.promoted(world.servers.master, at: world.now)
        // Its process repeats a cancellation that is lost, some time later.
        for id in recurring.keys { recurring[id]!.cancelledAt = nil }
    }

    func begins(_ call: MailCall) -> Int {
        lastCall += 1
        calls[lastCall] = call
        call.seat.calls.append(world.now)
        return lastCall
    }

    // MARK: The end

    /// Whether nothing is under way, and all devices have received all messages.
    var isDrained: Bool {
        unfinished == 0 && isInboxDrained && areJobsDone && seats.allSatisfy(isDrained)
            && world.processes.allSatisfy { $0.isDead || $0.mail?.sending == 0 }
    }

    func isDrained(_ seat: Seat) -> Bool {
        guard let record = ledger.boxes[seat.key]?.record else { return true }
        return seat.cursor == Cursor(epoch: record.epoch, index: record.last, tag: record.tag)
    }

    /// The number of sends across partitions, and of scheduled ones, that are recorded and not finished.
    private var unfinished: Int {
        var server = world.servers.master
        return (0..<plan.partitions).reduce(0) { count, partition in
            let keys = MailboxKeys(namespace, partition: partition)
            return [keys.unfinishedSends, keys.laterSends].reduce(count) {
                $0 + Int(server.execute("ZCARD", Bytes($1)).integer ?? 0)
            }
        }
    }

    /// Whether a failover may have lost a send before it was due, and nobody is left to repeat it.
    func mayBeLost(_ text: String, _ sender: MailProcess) -> Bool {
        due[text] != nil && sender.process.isDead && world.judge.losses > 0
    }

    func checkEnd() {
        for (text, boxes, sender) in confirmed where !mayBeLost(text, sender) {
            for box in boxes {
                let tags = (ledger.texts[box]?[text] ?? []).filter { !ledger.stored[box]![$0]!.isLost }
                if let tag = tags.first {
                    for seat in seats where seat.key == box { checkReceived(tag, seat) }
                } else if ledger.boxes[box]!.losses == 0 || !sender.process.isDead && ledger.isRepairable(text, in: box)
                {
                    world.violation("\(box) has lost \"\(text)\" of \(sender.process.name)")
                }
            }
        }
        for (text, boxes) in attempted where boxes.allSatisfy({ ledger.boxes[$0]?.losses ?? 0 == 0 }) {
            let found = boxes.filter { ledger.texts[$0]?[text] != nil }
            if !found.isEmpty, found.count < boxes.count {
                world.violation("only \(found) of \(boxes) have \"\(text)\"")
            }
        }
        // After its clock was set back, a server that has lost a message gets it again with an earlier time.
        for (text, time) in due where world.plan.faults.clockSteps == 0 {
            for (box, texts) in ledger.texts {
                for tag in texts[text] ?? [] where ledger.stored[box]![tag]!.entry.sent < time {
                    world.violation("\(box) has \"\(text)\" earlier than it was due")
                }
            }
        }
        for send in recurring.values { check(send) }
        checkInbox()
        checkJobs()
    }

    /// Each occurrence of a recurring send has reached all recipients, and none is early or came after the end.
    private func check(_ send: Recurring) {
        var found: [Int: Set<String>] = [:]
        for box in send.boxes {
            for entry in (ledger.stored[box] ?? [:]).values.map(\.entry) where entry.body == send.text {
                guard let time = MailEntry.occurrence(of: entry.id) else {
                    world.violation("\(box) has \(entry.id), which is no occurrence")
                    continue
                }
                found[time, default: []].insert(box)
                if world.plan.faults.clockSteps > 0 { continue }
                if entry.sent < time { world.violation("\(box) has \(entry.id) earlier than it was due") }
                if let end = send.cancelledAt, time > end {
                    world.violation("\(box) has \(entry.id), which was cancelled")
                }
            }
        }
        world.note("\(send.text): \(found.count) occurrences")
        let intact = send.boxes.filter { ledger.boxes[$0]?.losses ?? 0 == 0 }
        for (time, boxes) in found where !boxes.isSuperset(of: intact) {
            world.violation("only \(boxes.sorted()) of \(send.boxes) have \"\(send.text)\" of \(time)")
        }
    }

    /// Whether a device that was known before the send has received a message that was confirmed.
    private func checkReceived(_ tag: UInt64, _ seat: Seat) {
        let box = ledger.boxes[seat.key]!
        let stored = ledger.stored[seat.key]![tag]!
        let entry = stored.entry
        let now = world.serverTime
        // A copy that was sent again after a loss is the same message.
        let copies = ledger.texts[seat.key]?[entry.text] ?? [tag]
        guard let since = box.devices[seat.device]?.since, since < stored.at,
            copies.allSatisfy({ seat.received[$0] == nil }),
            entry.index > seat.restart, !entry.isSkipped(at: now),
            !(box.record?.entry(entry.index) ?? entry).isSkipped(at: now)
        else { return }
        world.violation("\(seat.key): \(seat.device) has never received \"\(entry.text)\" at \(entry.index)")
    }

    /// Ends all tasks, so that nothing of this world is left.
    func end() {
        let processes = world.processes.compactMap(\.mail)
        for process in processes { process.client.close() }
        for process in processes { process.cancel() }
        executor.drain()
        for process in processes { process.client.end() }
        executor.drain()
    }
}

extension World {
    /// The time by the server's clock, in milliseconds.
    var serverTime: Int { Int(servers.master.now / 1000) }

    /// Lets the server run a script of mailboxes, and compares what it has changed.
    func executeMail(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], of process: SimulatedProcess?
    ) -> RESPValue {
        let reply = servers.run(script, keys, arguments)
        exploration?.mailExecutes(arguments, reply, of: process)
        mail?.ledger.observe(script, keys, arguments, reply, servers.master, of: process?.number ?? -1, at: now)
        if notesScripts { note("  \(process?.name ?? "finisher") \(Self.words(script, keys, arguments, reply))") }
        deliverMessages()
        return reply
    }

    /// A script of mailboxes that the server has run, for a reader of the events.
    private static func words(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], _ reply: RESPValue
    ) -> String {
        let boxes = keys.filter { $0.contains(":box:") }.map { $0.split(separator: ":").last ?? "" }
        let status = reply.bytes == nil ? reply.array?.first?.string ?? "\(reply)" : "ok"
        if script === Scripts.listen {
            let request = MailListen(arguments)
            return "\(boxes[0]): \(request), poll \(request.poll) -> \(status)"
        }
        guard script === Scripts.send else {
            return "\(keys[0]) \(arguments.map(\.text).filter { $0.utf8.count < 40 }) -> \(reply)"
        }
        let request = MailSend(keys, arguments)
        let known = boxes.indices.map { request.known($0)?.index ?? -1 }
        return "send \(request.request) of \(MailSend.texts(arguments)) to \(boxes), known \(known) -> \(status)"
    }

    /// Lets the server run a command.
    func executeMail(_ command: RedisCommand) -> RESPValue { servers.run(command) }

    /// Sends what the server has published.
    func deliverMessages() {
        for delivery in servers.takeDeliveries() {
            if let process = processes.first(where: { $0.channel == delivery.client && !$0.isDead }) {
                process.deliver(delivery.reply)
            } else {
                for process in processes where !process.isDead {
                    if process.mail?.client.channels.deliver(delivery) ?? false { break }
                }
            }
        }
    }
}
