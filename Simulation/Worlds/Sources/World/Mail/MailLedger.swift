// What the mailboxes of a world have held: the records after each script, and whether the script may have changed them so.
import NIOCore
import SimulatedRedis

@testable import Hiredis
@testable import QueueListen

/// Follows the records of all mailboxes, read without the library.
struct MailLedger {
    /// A message that was stored.
    struct Stored {
        var entry: MailEntry
        /// The mailbox's epoch then.
        var epoch: UInt64
        /// The tag of the message before it.
        var previous: UInt64
        /// When it was stored, in the world's time.
        var at: Time
        /// When Redis has lost it, in the world's time.
        var lostAt: Time?
        /// Whether Redis has lost it.
        var isLost: Bool { lostAt != nil }
        /// Whether a later message with its collapse key has replaced it.
        var isReplaced = false
    }

    /// The last read of a process as a device, when the server carried it out. Its reply may be handled later, when a new
    /// master has other records.
    struct Read {
        /// In the world's time.
        var at: Time
        /// The last message that the device had acknowledged after it.
        var acknowledged = 0
        /// When a read of the process has replied last that there is a gap.
        var lastGap: Time?
    }

    /// A device as its reads and acknowledgements make it.
    struct Device {
        /// The last message that it has acknowledged; -1 for nothing since its last gap.
        var acknowledged = 0
        var tag: UInt64 = 0
        /// The current poll, and those that have begun before; each with its process.
        var current: String?
        var begun: [String] = []
        /// When it became known, in the world's time.
        var since: Time
    }

    struct Box {
        var record: MailRecord?
        var devices: [String: Device] = [:]
        /// How often Redis has lost messages of it.
        var losses = 0
        /// The number of losses when the epoch began.
        var lossesOfEpoch = 0
        /// Whether limits have deleted messages that a device had not acknowledged.
        var hasDropped = false
    }

    /// By the key of the mailbox's state.
    var boxes: [String: Box] = [:]
    /// By mailbox and tag.
    private(set) var stored: [String: [UInt64: Stored]] = [:]
    /// The tags of what was stored in a mailbox, by what was sent.
    private(set) var texts: [String: [String: [UInt64]]] = [:]
    /// The last reads, by process, mailbox and device.
    var reads: [String: Read] = [:]
    /// How often a request was carried out or answered again.
    private(set) var runs: [String: Int] = [:]
    /// Texts of scheduled sends that were cancelled.
    var cancelled: Set<String> = []
    /// What was deleted before workers have taken it: by a limit, or because no worker had begun.
    var deletedJobs: Set<String> = []
    /// Texts of sends that have certainly failed.
    var refused: Set<String> = []
    /// The end of texts of sends under ids of other ones.
    static let misuse = " instead"
    /// The tags that each request has stored, by the key of its answers, its place and its number.
    private var effects: [String: [(String, UInt64)]] = [:]
    /// The highest number that was answered in each place.
    private var highest: [String: Int] = [:]
    private(set) var violations: [String] = []

    static func mail(of box: String) -> String { box.replacing(":box:", with: ":mail:", maxReplacements: 1) }

    mutating func fail(_ text: String) { violations.append(text) }

    mutating func takeViolations() -> [String] {
        defer { violations = [] }
        return violations
    }

    mutating func update(_ name: String, _ change: (inout Box) -> Void) { change(&boxes[name, default: Box()]) }

    // MARK: After a script

    /// Compares the records after a script with those before it.
    mutating func observe(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], _ reply: RESPValue,
        _ server: SimulatedRedis, of process: Int, at now: Time
    ) {
        if let error = reply.errorMessage { fail("a script fails: \(error)") }
        let names = keys.filter { $0.contains(":box:") }
        let before = names.map { boxes[$0]?.record }
        let after = names.map { MailRecord(server, box: $0, mail: Self.mail(of: $0)) }
        let milliseconds = Int(server.now / 1000)
        for (name, (old, new)) in zip(names, zip(before, after)) where script !== Scripts.delete {
            compare(name, old, new, isSend: script === Scripts.send, milliseconds)
        }
        for (name, record) in zip(names, after) { keep(record, in: name, at: now) }
        if script === Scripts.send {
            for (name, (old, new)) in zip(names, zip(before, after)) {
                for entry in new?.entries ?? [] where entry.index > old?.last ?? 0 { runs["\(name) \(entry.text)"] = 1 }
            }
            for text in MailSend.texts(arguments) where reply.bytes == nil {
                for name in names { runs["\(name) \(text)"]? += 1 }
            }
            checkSend(MailSend(keys, arguments), names, before, after, reply)
        } else if script === Scripts.listen {
            let (name, request) = (names[0], MailListen(arguments))
            checkListen(request, name, before[0], after[0], reply, at: now, milliseconds)
            let key = "\(process) \(name) \(request.device)"
            let isGap = ["reset", "forked", "truncated"].contains(reply.array?.first?.string)
            reads[key] = Read(
                at: now, acknowledged: boxes[name]?.devices[request.device]?.acknowledged ?? 0,
                lastGap: isGap ? now : reads[key]?.lastGap)
        } else if script === Scripts.forget {
            checkForget(names[0], arguments, before[0], isForgotten: reply.array?.last?.integer == 1)
        }
    }

    /// What any script may do to a mailbox.
    private mutating func compare(
        _ name: String, _ old: MailRecord?, _ new: MailRecord?, isSend: Bool, _ milliseconds: Int
    ) {
        guard let new else {
            if old != nil { fail("\(name) is gone") }
            return
        }
        for fault in new.faults() { fail("\(name): \(fault)") }
        guard let old else { return }
        if new.epoch != old.epoch {
            let box = boxes[name]!
            if box.losses == box.lossesOfEpoch { fail("\(name) has a new epoch, and nothing was lost") }
            let items = stored[name] ?? [:]
            let there = Set(items.values.filter { !$0.isLost }.map(\.entry.text))
            let lost = Set(items.values.filter { $0.isLost && $0.epoch == old.epoch }.map(\.entry.text))
            if lost.isSubset(of: there) { fail("\(name) has a new epoch, and what was lost is there again") }
            boxes[name]!.lossesOfEpoch = box.losses
            for device in box.devices.keys { boxes[name]!.devices[device]!.acknowledged = -1 }
        }
        if new.from < old.from || new.last < old.last { fail("\(name) goes back") }
        if new.last > old.last, !isSend { fail("\(name) has grown without a send") }
        let added = Set(new.entries.filter { $0.index > old.last }.map(\.key)).subtracting([""])
        for entry in old.entries where entry.index > new.from {
            guard let kept = new.entry(entry.index), kept.tag == entry.tag else {
                fail("\(name): message \(entry.index) has changed")
                continue
            }
            if kept.isEmpty { stored[name]?[kept.tag]?.isReplaced = true }
            if kept.isEmpty, !entry.isEmpty, !added.contains(entry.key) {
                fail("\(name): message \(entry.index) was replaced, but no message has its key \"\(entry.key)\"")
            }
            if !kept.isEmpty, kept != entry { fail("\(name): message \(entry.index) has changed") }
        }
        if new.from > old.from, isSend { checkDrop(name, old, new, milliseconds) }
    }

    /// What a send has deleted: as much as its mailbox's limits require.
    private mutating func checkDrop(_ name: String, _ old: MailRecord, _ new: MailRecord, _ milliseconds: Int) {
        guard let limits = new.limits else { return fail("\(name): a send has deleted messages without limits") }
        let dropped = old.entries.filter { $0.index <= new.from }
        if limits.whenFull == .reject, dropped.contains(where: { !$0.isSkipped(at: milliseconds) }) {
            fail("\(name): a send has deleted a message of a mailbox that rejects")
        }
        let least = boxes[name]!.devices.values.map(\.acknowledged).min() ?? 0
        if dropped.contains(where: { $0.index > least }) { boxes[name]!.hasDropped = true }
        let taken = old.device("workers")?.index ?? 0
        for entry in dropped where entry.index > taken { deletedJobs.insert(entry.text) }
        let needed = (new.last - old.from) - limits.maxMessages
        if dropped.count > max(needed, 1), limits.maxBytes > 1 << 20 {
            fail("\(name): a send has deleted \(dropped.count) messages, and needed \(needed)")
        }
    }

    /// Stores what a mailbox has now.
    private mutating func keep(_ record: MailRecord?, in name: String, at now: Time) {
        for entry in record?.entries.reversed() ?? [] {
            if stored[name]?[entry.tag] != nil { break }
            let previous = record!.tag(of: entry.index - 1) ?? 0
            stored[name, default: [:]][entry.tag] = Stored(
                entry: entry, epoch: record!.epoch, previous: previous, at: now)
            if entry.isEmpty { continue }
            let tags = texts[name]?[entry.text] ?? []
            texts[name, default: [:]][entry.text] = tags + [entry.tag]
            let isCopied = name.hasSuffix(":" + Inbox.deadLetters) && boxes.values.contains { $0.losses > 0 }
            // A message that is sent again after a loss may become a dead letter again.
            if !isCopied, tags.contains(where: { !stored[name]![$0]!.isLost }) {
                fail("\(name) has \"\(entry.text)\" twice")
            }
            if cancelled.contains(entry.text) { fail("\(name) has \"\(entry.text)\", which was cancelled") }
            if refused.contains(entry.text) { fail("\(name) has \"\(entry.text)\", whose send was refused") }
        }
        boxes[name, default: Box()].record = record
    }

    /// A device is forgotten, unless it was seen since this was decided.
    private mutating func checkForget(
        _ name: String, _ arguments: [RedisArgument], _ record: MailRecord?, isForgotten: Bool
    ) {
        let (device, expected) = (arguments[1].text, arguments[2].text)
        if let seen = record?.device(device)?.seen, !expected.isEmpty, isForgotten != (expected == "\(seen)") {
            fail("\(name): \(device), seen at \(seen), was \(isForgotten ? "" : "not ")forgotten as of \(expected)")
        }
        if isForgotten { boxes[name]!.devices[device] = nil }
    }

    // MARK: Losses

    /// The time for which senders remember what was confirmed.
    static let repairTime = Duration.seconds(60)

    /// Whether a living sender must have sent a message again that Redis has lost, each time.
    func isRepairable(_ text: String, in name: String) -> Bool {
        (texts[name]?[text] ?? []).allSatisfy { tag in
            let item = stored[name]![tag]!
            return item.lostAt.map { $0 - item.at < Self.repairTime.microseconds / 2 } ?? false
        }
    }

    /// A replica is the master, and may lack the last writes.
    mutating func promoted(_ server: SimulatedRedis, at now: Time) {
        for name in boxes.keys.sorted() {
            let old = boxes[name]!.record
            let new = MailRecord(server, box: name, mail: Self.mail(of: name))
            let kept = Set(new?.entries.map(\.tag) ?? [])
            let last = new?.last ?? 0
            var hasLost = old != nil && new == nil
            for (tag, item) in stored[name] ?? [:] where !item.isLost {
                if item.entry.index > last || item.entry.index > new!.from && !kept.contains(tag) {
                    stored[name]![tag]!.lostAt = now
                    hasLost = true
                }
            }
            if old?.epoch != new?.epoch { hasLost = true }
            boxes[name]!.record = new
            if hasLost { boxes[name]!.losses += 1 }
            let known = boxes[name]!.devices
            boxes[name]!.devices = [:]
            for device in new?.devices ?? [] {
                boxes[name]!.devices[device.name] = Device(
                    acknowledged: device.index, tag: device.tag, current: device.polls.first,
                    begun: device.polls.reversed(), since: known[device.name]?.since ?? now)
            }
        }
        effects = [:]
        for place in highest.keys { highest[place] = Self.answered(in: place, server) }
        // The cancellations may be lost with their processes.
        cancelled = []
        // Their ids may be forgotten.
        refused = refused.filter { !$0.hasSuffix(Self.misuse) }
    }

    /// The number of the last request that a server has answered in a place; 0 for none.
    private static func answered(in place: String, _ server: SimulatedRedis) -> Int {
        var server = server
        let words = place.split(separator: " ")
        let field = words.suffix(2).compactMap { UInt8($0) }
        let key = words.dropLast(2).joined(separator: " ")
        // A stored answer begins with the number of its request.
        var answer = ByteReader(server.execute("HGET", Bytes(key), Bytes(field)).bytes?.array ?? [])
        return answer.number() ?? 0
    }

    // MARK: Sends

    private mutating func checkSend(
        _ send: MailSend, _ names: [String], _ before: [MailRecord?], _ after: [MailRecord?], _ reply: RESPValue
    ) {
        let grown = zip(before, after).map { ($1?.last ?? 0) - ($0?.last ?? 0) }
        guard let bytes = reply.bytes else {
            if reply.array?.first?.string == "full" { checkFull(send, names, before, reply) }
            if grown.contains(where: { $0 != 0 }) { fail("a send that replied \(reply) has stored messages") }
            if send.mode == 1, before != after { fail("a probe has changed a mailbox") }
            return
        }
        var reader = ByteReader(bytes)
        var tags: [(String, UInt64)] = []
        for (position, name) in names.enumerated() {
            guard let index = reader.number(), let epoch = reader.uint64(), let new = after[position] else {
                return fail("a send has the reply \(reply)")
            }
            if index != (before[position]?.last ?? 0) + 1 || epoch != new.epoch {
                fail("\(name): a send replied index \(index) and epoch \(epoch)")
            }
            if grown[position] < 1 { fail("\(name): a send that was confirmed has stored nothing") }
            tags += new.entries.suffix(grown[position]).map { (name, $0.tag) }
            if send.mode == 0, let limits = new.limits, new.entries.count > limits.maxMessages {
                fail("\(name) has \(new.entries.count) messages of \(limits.maxMessages)")
            }
            if let known = send.known(position) { checkKnown(known, before[position], new, name) }
        }
        if let earlier = effects[send.request], earlier.contains(where: { stored[$0]?[$1]?.isLost == false }) {
            fail("the request \(send.request) has had two effects")
        }
        if send.number < highest[send.place] ?? 0 { fail("the request \(send.request) comes after a later one") }
        if send.mode == 0, send.condition > highest[send.place] ?? send.condition {
            fail("the request \(send.request) hides that \(send.condition) in its place is lost")
        }
        effects[send.request] = tags
        highest[send.place] = max(send.number, highest[send.place] ?? 0)
    }

    /// A send may be refused if one of its mailboxes is full of messages that are needed.
    private mutating func checkFull(
        _ send: MailSend, _ names: [String], _ before: [MailRecord?], _ reply: RESPValue
    ) {
        let position = (reply.array?.last?.integer ?? 0) - 1
        guard before.indices.contains(position), let record = before[position], let limits = record.limits else {
            return fail("a send was refused by a mailbox without limits: \(reply)")
        }
        let needed = record.entries.count + send.messages - limits.maxMessages
        if limits.whenFull != .reject || needed <= 0 { fail("\(names[position]) refuses, and is not full") }
    }

    /// A send whose sender knows a message that the mailbox has lost must not be stored, unless later messages in its place
    /// were deleted: 32 acknowledged ones, or any by limits. What is sent again creates a mailbox in its former epoch.
    private mutating func checkKnown(
        _ known: Cursor, _ before: MailRecord?, _ new: MailRecord, _ name: String
    ) {
        guard known.index > 0 else {
            if before == nil, known.epoch != 0, known.epoch != new.epoch { fail("\(name) is created in another epoch") }
            return
        }
        guard let old = before, known.epoch == old.epoch else {
            return fail("\(name): a sender was not told that the mailbox is another one")
        }
        let isThere =
            known.index > old.last
            ? false
            : known.index >= old.from
                ? old.tag(of: known.index) == known.tag
                : old.limits != nil || known.index <= old.from - 32 || stored[name]?[known.tag]?.isLost != true
        if !isThere { fail("\(name): a sender was not told that message \(known.index) is lost") }
    }
}

extension RedisArgument {
    /// The argument as text.
    var text: String {
        switch self {
        case .string(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer(let number): "\(number)"
        case .buffer(let buffer): String(decoding: buffer.readableBytesView, as: UTF8.self)
        }
    }

    /// The argument as bytes.
    var byteList: [UInt8] {
        if case .bytes(let bytes) = self { bytes } else { Array(text.utf8) }
    }
}
