// Reads the records of one mailbox, and checks that they are consistent: see docs/wire-format.md.
import SimulatedRedis

@testable import QueueListen

/// A message in a mailbox's list.
struct MailEntry: Equatable {
    /// Whether a later message with its collapse key has replaced it.
    var isEmpty: Bool
    var index: Int
    var sum: Int
    /// When it was sent, in milliseconds by the server's clock.
    var sent: Int
    var tag: UInt64
    /// For how many milliseconds it is delivered; 0 for ever.
    var life: Int
    var key: String
    /// The size of its two elements.
    var size: Int
    /// The id of the message, and its body.
    var id: String
    var body: String
    /// What was sent: the body, and the time of an occurrence of a recurring send, which all have the same body.
    var text: String { Self.occurrence(of: id).map { "\(body)@\($0)" } ?? body }

    /// The time of an occurrence of a recurring send, from the id of its message, `ID@TIME/NUMBER`.
    static func occurrence(of id: String) -> Int? {
        id.split(separator: "@").dropFirst().last?.split(separator: "/").first.flatMap { Int($0) }
    }

    init?(_ head: [UInt8], _ body: [UInt8]) {
        var reader = ByteReader(head)
        guard head.count == 27, let kind = reader.integer(size: 1), let index = reader.integer(size: 6),
            let sum = reader.integer(size: 6), let sent = reader.integer(size: 6), let tag = reader.uint64(),
            kind == 77 || kind == 88
        else { return nil }
        (isEmpty, self.index, self.sum, self.sent, self.tag) = (kind == 88, index, sum, sent, tag)
        size = head.count + body.count
        reader = ByteReader(body)
        guard let life = reader.integer(size: 6), let length = reader.integer(size: 1), let key = reader.bytes(length)
        else { return nil }
        (self.life, self.key) = (life, String(decoding: key, as: UTF8.self))
        let envelope = Envelope.decode(reader.rest)
        (id, self.body) = (envelope.id, String(decoding: envelope.body, as: UTF8.self))
    }

    /// Whether a reader skips it at a time by the server's clock.
    func isSkipped(at milliseconds: Int) -> Bool { isEmpty || life > 0 && sent + life <= milliseconds }
}

/// A device of a mailbox.
struct MailDevice: Equatable {
    var name: String
    /// The last message that it has acknowledged; -1 for nothing since its last gap.
    var index: Int
    var tag: UInt64
    var seen: Int
    /// The processes and numbers of its polls, the current one first.
    var polls: [String]
}

/// A mailbox at one moment.
struct MailRecord: Equatable {
    var epoch: UInt64 = 0
    var (last, from, sum, fromSum, hollow, keyed) = (0, 0, 0, 0, 0, 0)
    var (tag, fromTag) = (UInt64(0), UInt64(0))
    var entries: [MailEntry] = []
    var devices: [MailDevice] = []
    var limits: MailboxLimits?
    /// The index of the last message of each collapse key.
    var keys: [String: Int] = [:]
    var history: [UInt8] = []
    /// When the two keys expire, in milliseconds by the server's clock; -1 for never.
    var (boxExpiry, listExpiry) = (Int64(-1), Int64(-1))
    /// What cannot be read.
    private(set) var damage: [String] = []

    /// Reads a mailbox; `nil` if it does not exist.
    init?(_ server: SimulatedRedis, box: String, mail: String) {
        var server = server
        let cells = server.execute("HGETALL", Bytes(box)).elements?.compactMap(\.bytes?.array) ?? []
        let list = server.execute("LRANGE", Bytes(mail), "0", "-1").elements?.compactMap(\.bytes?.array) ?? []
        if cells.isEmpty, list.isEmpty { return nil }
        for at in stride(from: 0, to: cells.count - 1, by: 2) { read(cells[at], cells[at + 1]) }
        for at in stride(from: 0, to: list.count - 1, by: 2) {
            if let entry = MailEntry(list[at], list[at + 1]) {
                entries.append(entry)
            } else {
                damage.append("an element that is not a message")
            }
        }
        if list.count % 2 == 1 { damage.append("half a message") }
        let expiry = { (key: String) -> Int64 in
            let left = server.execute("PTTL", Bytes(key)).integer ?? -1
            return left < 0 ? -1 : server.now / 1000 + left
        }
        (boxExpiry, listExpiry) = (expiry(box), expiry(mail))
    }

    /// A device; `nil` if it is not known.
    func device(_ name: String) -> MailDevice? { devices.first { $0.name == name } }

    private mutating func read(_ field: [UInt8], _ value: [UInt8]) {
        switch String(decoding: field, as: UTF8.self) {
        case "m": if !readState(value) { damage.append("the state cannot be read") }
        case "d":
            var reader = ByteReader(value)
            while !reader.rest.isEmpty {
                guard let device = MailDevice(&reader) else { return damage.append("the devices cannot be read") }
                devices.append(device)
            }
        case "h": history = value
        case let name where name.hasPrefix("k:"):
            keys[String(name.dropFirst(2))] = Int(String(decoding: value, as: UTF8.self)) ?? -1
        default: damage.append("the field \(Bytes(field))")
        }
    }

    private mutating func readState(_ value: [UInt8]) -> Bool {
        var reader = ByteReader(value)
        guard reader.integer(size: 2) != nil, let epoch = reader.uint64(), let last = reader.number(),
            let tag = reader.uint64(), let from = reader.number(), let fromTag = reader.uint64(),
            let sum = reader.number(), let fromSum = reader.number(), let hollow = reader.number(),
            let keyed = reader.number(), reader.number() != nil, let own = reader.integer(size: 1),
            let packed = reader.bytes(own), reader.rest.count % 24 == 0
        else { return false }
        (self.epoch, self.last, self.tag, self.from, self.fromTag) = (epoch, last, tag, from, fromTag)
        (self.sum, self.fromSum, self.hollow, self.keyed) = (sum, fromSum, hollow, keyed)
        if own > 0 { limits = MailboxLimits(packed: Array(packed)) }
        return own == 0 || limits != nil
    }

    /// The message with an index.
    func entry(_ index: Int) -> MailEntry? {
        entries.indices.contains(index - from - 1) && index <= last ? entries[index - from - 1] : nil
    }

    /// The tag of the message with an index, as far as it is known.
    func tag(of index: Int) -> UInt64? { index == from ? fromTag : entry(index)?.tag }

    /// The inconsistencies; empty if there is none.
    func faults() -> [String] {
        var faults = damage
        if entries.count != last - from { faults.append("\(entries.count) messages of \(last - from)") }
        var (sum, hollow) = (fromSum, 0)
        var live: Set<String> = []
        for (position, entry) in entries.enumerated() {
            if entry.index != from + 1 + position { faults.append("\(entry.index) is at place \(position + 1)") }
            if entry.sum - sum < entry.size { faults.append("the sum at \(entry.index) is too small") }
            hollow += entry.sum - sum - entry.size
            if !entry.isEmpty, entry.sum - sum != entry.size { faults.append("the sum at \(entry.index) is wrong") }
            sum = entry.sum
            if entry.isEmpty || entry.key.isEmpty { continue }
            if !live.insert(entry.key).inserted { faults.append("two messages have the key \(entry.key)") }
            if keys[entry.key] != entry.index { faults.append("the key \(entry.key) is not at \(entry.index)") }
        }
        if sum != self.sum { faults.append("the sum is \(self.sum), not \(sum)") }
        if hollow != self.hollow { faults.append("\(self.hollow) hollow bytes, not \(hollow)") }
        if keyed != keys.count { faults.append("\(keyed) collapse keys of \(keys.count)") }
        if keys.values.contains(where: { $0 <= from || $0 > last }) { faults.append("a collapse key of no message") }
        if tag != self.tag(of: last) { faults.append("the tag of the last message is another one") }
        if Set(devices.map(\.name)).count < devices.count { faults.append("a device is there twice") }
        for device in devices {
            if device.index > last { faults.append("\(device.name) has acknowledged \(device.index) of \(last)") }
            let processes = device.polls.map { $0.prefix(16) }
            if processes.count > 4 || Set(processes).count < processes.count {
                faults.append("\(device.name) has the polls \(device.polls)")
            }
        }
        if history.count % 8 != 0 || history.count > 256 { faults.append("a history of \(history.count) bytes") }
        if !entries.isEmpty, boxExpiry != listExpiry {
            faults.append("the keys expire at \(boxExpiry) and \(listExpiry) ms")
        }
        return faults
    }
}

extension MailDevice {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let size = reader.integer(size: 1), let name = reader.bytes(size), let index = reader.bytes(8),
            let tag = reader.uint64(), let seen = reader.number(), let length = reader.integer(size: 1),
            let polls = reader.bytes(length), length % 24 == 0
        else { return nil }
        self.name = String(decoding: name, as: UTF8.self)
        self.index = Int(Double(bitPattern: index.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }))
        (self.tag, self.seen) = (tag, seen)
        self.polls = stride(from: 0, to: length, by: 24).map { at in
            var poll = ByteReader(polls.dropFirst(at).prefix(24))
            let process = String(decoding: poll.bytes(16) ?? [], as: UTF8.self)
            return process + " \(poll.number() ?? 0)"
        }
    }
}
