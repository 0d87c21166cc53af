// A send in the two forms in which it is transmitted: as arguments of a partition's script, and as one byte string that
// is stored in Redis until all partitions have received their part.
import Hiredis

/// Encoded messages and their recipients.
struct EncodedSend: Sendable, Equatable {
    /// One message.
    struct Content: Sendable, Equatable {
        /// The time to live in milliseconds; 0 if there is none.
        var life: Int
        /// Empty if there is none.
        var collapseKey: String
        var envelope: [UInt8]
    }

    var contents: [Content]
    var recipients: [String]
    /// The positions in `contents` of each recipient's messages; `nil` if every recipient gets all
    /// messages.
    var shares: [[Int]]?

    /// The number of messages that a recipient gets.
    func count(of recipient: Int) -> Int { shares?[recipient].count ?? contents.count }

    /// The position in `contents` of a recipient's last message.
    func last(of recipient: Int) -> Int { shares?[recipient].last ?? contents.count - 1 }

    /// The send to some of the recipients, with only their messages.
    ///
    /// - Parameter positions: positions in `recipients`.
    func part(_ positions: [Int]) -> EncodedSend {
        let recipients = positions.map { self.recipients[$0] }
        guard let shares else { return EncodedSend(contents: contents, recipients: recipients) }
        var places: [Int: Int] = [:]
        var contents: [Content] = []
        let own = positions.map { recipient in
            shares[recipient].map { position in
                if let place = places[position] { return place }
                contents.append(self.contents[position])
                places[position] = contents.count - 1
                return contents.count - 1
            }
        }
        return EncodedSend(contents: contents, recipients: recipients, shares: own)
    }

    /// The send some time later: the messages live so much shorter, at least 1 ms.
    func aged(by time: Duration) -> EncodedSend {
        guard contents.contains(where: { $0.life > 0 }) else { return self }
        var aged = self
        for position in contents.indices where contents[position].life > 0 {
            aged.contents[position].life = max(1, contents[position].life - time.wholeMilliseconds)
        }
        return aged
    }

    /// One occurrence of a recurring send: its messages have ids of their own, so that their recipients take all of them.
    ///
    /// - Parameter due: in milliseconds since 1970.
    func occurrence(at due: Int) -> EncodedSend {
        var occurrence = self
        for position in contents.indices {
            occurrence.contents[position].envelope = Envelope.appending(
                "@\(due)", toSendIDOf: contents[position].envelope)
        }
        return occurrence
    }

    // MARK: Arguments of send.lua

    /// The script's keys.
    func keys(in partition: Partition, sender: String) -> [String] {
        var keys = [partition.keys.meta, partition.keys.sent(sender)]
        keys.reserveCapacity(2 + 2 * recipients.count)
        for name in recipients { keys += [partition.keys.box(name), partition.keys.mail(name)] }
        return keys
    }

    /// A new tag for each message.
    ///
    /// Each attempt gets new tags: a message that is sent again because Redis has lost it must be
    /// distinguishable from the lost one.
    func newTags() -> [UInt64] { contents.map { _ in UInt64.random(in: 1 ... .max) } }

    /// The script's arguments for the messages and the shares.
    func arguments() -> [RedisArgument] {
        var arguments: [RedisArgument] = []
        arguments.reserveCapacity(contents.count + (shares?.count ?? 0))
        for content in contents {
            var body = PackedBytes()
            body.uint48(content.life)
            body.byte(UInt8(content.collapseKey.utf8.count))
            body.raw(content.collapseKey.utf8)
            body.raw(content.envelope)
            arguments.append(.bytes(body.bytes))
        }
        for share in shares ?? [] { arguments.append(.string(Self.list(share))) }
        return arguments
    }

    /// Whether any message has a collapse key.
    var hasCollapseKeys: Bool { contents.contains { !$0.collapseKey.isEmpty } }

    private static func list(_ share: [Int]) -> String { share.map { "\($0 + 1)" }.joined(separator: ",") }

    // MARK: One byte string

    /// The send as words, each preceded by its length in 4 bytes, little-endian.
    ///
    /// The number of messages; for each message its time to live, collapse key and envelope; then
    /// for each recipient its name and the numbers of its messages, or an empty word for all
    /// messages.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        func word(_ word: some Collection<UInt8>) {
            withUnsafeBytes(of: UInt32(word.count).littleEndian) { bytes += $0 }
            bytes += word
        }
        word("\(contents.count)".utf8)
        for content in contents {
            word("\(content.life)".utf8)
            word(content.collapseKey.utf8)
            word(content.envelope)
        }
        for (position, name) in recipients.enumerated() {
            word(name.utf8)
            word((shares.map { Self.list($0[position]) } ?? "").utf8)
        }
        return bytes
    }

    /// Identifies the send: FNV-1a, 64 bits, over ``encoded``, in hexadecimal digits.
    ///
    /// It covers everything that is stored, because it is computed from what is stored. Two sends with the same id and
    /// different fingerprints are a conflict.
    var fingerprint: String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in encoded { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }

    /// Decodes ``encoded``; `nil` if the bytes are not in that format.
    init?(encoded bytes: [UInt8]) {
        var rest = bytes[...]
        func word() -> ArraySlice<UInt8>? {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func number() -> Int? { word().flatMap { Int(String(decoding: $0, as: UTF8.self)) } }
        guard let count = number(), (1...SendRequest.maxDeliveries).contains(count) else { return nil }
        contents = []
        for _ in 0..<count {
            guard let life = number(), let key = word(), let envelope = word() else { return nil }
            contents.append(
                Content(life: life, collapseKey: String(decoding: key, as: UTF8.self), envelope: Array(envelope)))
        }
        recipients = []
        var shares: [[Int]] = []
        while !rest.isEmpty {
            guard let name = word(), let list = word() else { return nil }
            recipients.append(String(decoding: name, as: UTF8.self))
            let share = list.split(separator: UInt8(ascii: ",")).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
            guard share.allSatisfy({ (1...count).contains($0) }) else { return nil }
            shares.append(share.map { $0 - 1 })
        }
        guard !recipients.isEmpty else { return nil }
        self.shares = shares.allSatisfy(\.isEmpty) ? nil : shares
        if let shares = self.shares, shares.contains(where: \.isEmpty) { return nil }
    }

    init(contents: [Content], recipients: [String], shares: [[Int]]? = nil) {
        (self.contents, self.recipients, self.shares) = (contents, recipients, shares)
    }
}
