// A send as it travels: to a partition's script, and across partitions through Redis.
import Hiredis

/// Messages with their envelopes, and who gets which of them.
struct EncodedSend: Sendable, Equatable {
    struct Content: Sendable, Equatable {
        /// Milliseconds, or 0.
        var life: Int
        /// Empty: none.
        var collapseKey: String
        var envelope: [UInt8]
    }

    var contents: [Content]
    var recipients: [String]
    /// For each recipient the positions of its messages; `nil`: all.
    var shares: [[Int]]?

    func count(of recipient: Int) -> Int { shares?[recipient].count ?? contents.count }

    /// The position of a recipient's last message.
    func last(of recipient: Int) -> Int { shares?[recipient].last ?? contents.count - 1 }

    /// What these recipients, by their positions, get.
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

    // MARK: For mail_send.lua

    func keys(in partition: Partition, sender: String) -> [String] {
        var keys = [partition.meta, partition.sent(sender)]
        keys.reserveCapacity(2 + 2 * recipients.count)
        for name in recipients { keys += [partition.box(name), partition.mail(name)] }
        return keys
    }

    /// The messages, then who gets which of them. Their tags are new with every attempt: what is sent again because Redis
    /// has lost it must not look like what was lost.
    func arguments() -> (arguments: [RedisArgument], tags: [UInt64]) {
        var arguments: [RedisArgument] = []
        arguments.reserveCapacity(4 * contents.count + (shares?.count ?? 0))
        var tags: [UInt64] = []
        for content in contents {
            let tag = UInt64.random(in: 1 ... .max)
            tags.append(tag)
            arguments.append(.bytes(tag.mark))
            arguments.append(.integer(content.life))
            arguments.append(.string(content.collapseKey))
            arguments.append(.bytes(content.envelope))
        }
        for share in shares ?? [] { arguments.append(.string(Self.list(share))) }
        return (arguments, tags)
    }

    private static func list(_ share: [Int]) -> String { share.map { "\($0 + 1)" }.joined(separator: ",") }

    // MARK: Through Redis

    /// Words, each after its length in 4 bytes, little-endian: the number of messages, for each how long it lives, its
    /// collapse key and its envelope, then for each recipient its name and the numbers of its messages or nothing.
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

    /// `nil`: not one of ours.
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
        guard let count = number(), (1...SendRequest.maxMessages).contains(count) else { return nil }
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
