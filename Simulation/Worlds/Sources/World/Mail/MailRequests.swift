// The packed requests of the scripts of mailboxes, as docs/wire-format.md describes them.
@testable import Hiredis
@testable import QueueListen

/// The request of a send.
struct MailSend {
    var mode = 0
    var number = 0
    /// The number of messages.
    var messages = 0
    /// To send: the number of an earlier request in the same place, which Redis must have.
    var condition = 0
    /// Where the answer is kept: the key and the place.
    var place: String
    /// What identifies the request.
    var request: String { "\(place) \(number)" }
    private var confirmed: [Cursor] = []

    init(_ keys: [String], _ arguments: [RedisArgument]) {
        let header = arguments[0].byteList
        place = keys[1]
        guard header.count >= 81 else { return }
        mode = Int(header[0])
        messages = Int(header[4]) + Int(header[5]) << 8
        place += " \(header[6]) \(header[7])"
        var reader = ByteReader(header[8...])
        number = reader.number() ?? 0
        _ = (reader.number(), reader.uint64())
        condition = reader.number() ?? 0
        reader = ByteReader(header.dropFirst(73 + 8 * messages))
        while let cursor = reader.cursor() { confirmed.append(cursor) }
    }

    /// What is sent: the bodies of the messages.
    static func texts(_ arguments: [RedisArgument]) -> [String] {
        arguments.dropFirst().compactMap { MailEntry([77] + Array(repeating: 0, count: 26), $0.byteList)?.text }
    }

    /// The message that the sender knows as the last confirmed one in a recipient's mailbox.
    func known(_ recipient: Int) -> Cursor? { recipient < confirmed.count ? confirmed[recipient] : nil }
}

/// The request of a listen.
struct MailListen: CustomStringConvertible {
    var device: String
    /// 0 continues, 1 begins, 2 acknowledges, 3 registers.
    var phase = 0
    var readsAhead = false
    /// Whether a device that is not known is refused.
    var requiresDevice = false
    /// The process and the number of the poll.
    var poll = ""
    /// The cursor; the index is -1 for what the device has acknowledged.
    var index = -1
    var epoch: UInt64 = 0
    var tag: UInt64 = 0
    var maxMessages = 0
    var deviceTTL = 0

    init(_ arguments: [RedisArgument]) {
        device = arguments[1].text
        let bytes = arguments[0].byteList
        var reader = ByteReader(bytes.dropFirst(10))
        guard let flags = reader.integer(size: 1), let process = reader.bytes(16), let number = reader.number(),
            reader.number() != nil, let index = reader.number(), let epoch = reader.uint64(),
            let tag = reader.uint64(), let most = reader.number(), reader.number() != nil
        else { return }
        (phase, readsAhead, requiresDevice) = (flags & 3, flags & 4 > 0, flags & 8 > 0)
        poll = String(decoding: process, as: UTF8.self) + " \(number)"
        (self.index, self.epoch, self.tag, maxMessages) = (index, epoch, tag, min(most, 1000))
        _ = (reader.number(), reader.number(), reader.number())
        deviceTTL = reader.number() ?? 0
    }

    /// Whether one poll of a process is newer than another one.
    static func isNewer(_ one: String, than other: String) -> Bool {
        let (one, other) = (one.split(separator: " "), other.split(separator: " "))
        return one[0] != other[0] || (Int(one[1]) ?? 0) > (Int(other[1]) ?? 0)
    }

    var description: String {
        "\(["listen", "first listen", "acknowledge", "register"][phase])\(readsAhead ? " ahead" : "") of \(device) after \(index)"
    }
}
