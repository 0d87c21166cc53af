// The encoding of what scripts store, publish and return. docs/wire-format.md describes it.
import Hiredis

/// Reads little-endian values from bytes.
struct PresenceBytes {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isEmpty: Bool { rest.isEmpty }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        guard let bytes = bytes(Value.bitWidth / 8) else { return nil }
        return bytes.reversed().reduce(0) { $0 << 8 | Value(truncatingIfNeeded: $1) }
    }

    /// A whole number that is stored as a double.
    mutating func number() -> Int? {
        guard let bits = integer(UInt64.self) else { return nil }
        return Int(exactly: Double(bitPattern: bits))
    }

    /// Bytes after their number in 2 bytes.
    mutating func sized() -> [UInt8]? { integer(UInt16.self).flatMap { bytes(Int($0)) } }

    /// A text after its length in 2 bytes.
    mutating func text() -> String? { sized().map { String(decoding: $0, as: UTF8.self) } }

    mutating func remainder() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }

    mutating func position() -> PresencePosition? {
        guard let epoch = integer(UInt64.self), let version = number(), let tag = integer(UInt64.self) else {
            return nil
        }
        return PresencePosition(version: version, epoch: epoch, tag: tag)
    }
}

extension [UInt8] {
    mutating func append<Value: FixedWidthInteger>(integer value: Value) {
        for shift in stride(from: 0, to: Value.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func append(number: Int) { append(integer: Double(number).bitPattern) }

    /// Appends a text of at most 65,535 bytes after its length.
    mutating func append(text: String) {
        append(integer: UInt16(text.utf8.count))
        append(contentsOf: text.utf8)
    }

    mutating func append(position: PresencePosition) {
        append(integer: position.epoch)
        append(number: position.version)
        append(integer: position.tag)
    }
}

/// A change with the tag of the script that made it.
struct LoggedChange: Sendable, Hashable {
    var tag: UInt64
    var change: PresenceChange

    /// Decodes an element of the log.
    init?(_ bytes: [UInt8], version: Int) {
        var reader = PresenceBytes(bytes)
        guard let tag = reader.integer(UInt64.self), let kind = reader.integer(UInt8.self),
            let detail = reader.integer(UInt8.self), let owner = reader.sized().flatMap({ OwnerField($0) }),
            let key = reader.text()
        else { return nil }
        self.tag = tag
        switch UnicodeScalar(kind) {
        case "p":
            let object = PresenceObject(
                key: key, value: reader.remainder(), user: owner.user, client: owner.client, version: version)
            change = PresenceChange(version: version, kind: .put(object, isNew: detail == 1))
        case "e":
            let reason: PresenceLeave.Reason =
                switch UnicodeScalar(detail) {
                case "g": .gone
                case "d": .processDied
                default: .removed
                }
            let leave = PresenceLeave(key: key, user: owner.user, client: owner.client, reason: reason)
            change = PresenceChange(version: version, kind: .left(leave))
        default: return nil
        }
    }

    /// The position of a bucket after this change.
    func position(epoch: UInt64) -> PresencePosition {
        PresencePosition(version: change.version, epoch: epoch, tag: tag)
    }
}

/// The changes that one script has published.
struct PresencePublication: Sendable {
    /// The position before the changes.
    var start: PresencePosition
    var changes: [LoggedChange]

    init(start: PresencePosition, changes: [LoggedChange]) { (self.start, self.changes) = (start, changes) }

    /// Decodes a message of the channel.
    init?(_ bytes: [UInt8]) {
        var reader = PresenceBytes(bytes)
        guard let start = reader.position() else { return nil }
        self.start = start
        changes = []
        while !reader.isEmpty {
            guard let length = reader.integer(UInt32.self), let bytes = reader.bytes(Int(length)),
                let change = LoggedChange(bytes, version: start.version + changes.count + 1)
            else { return nil }
            changes.append(change)
        }
    }

    /// The position after the changes.
    var end: PresencePosition { changes.last?.position(epoch: start.epoch) ?? start }
}

/// The owner of an object as the scripts store it: `uUSER`, or `cUSER`, a zero byte and `CLIENT`.
struct OwnerField {
    var user: String
    var client: String?

    init?(_ bytes: [UInt8]) {
        let name = bytes.dropFirst()
        switch bytes.first {
        case UInt8(ascii: "u"): (user, client) = (String(decoding: name, as: UTF8.self), nil)
        case UInt8(ascii: "c"):
            guard let end = name.firstIndex(of: 0) else { return nil }
            user = String(decoding: name[..<end], as: UTF8.self)
            client = String(decoding: name[(end + 1)...], as: UTF8.self)
        default: return nil
        }
    }
}

extension PresenceObject {
    /// Decodes a stored object.
    init?(key: String, record: [UInt8]) {
        var reader = PresenceBytes(record)
        guard let version = reader.number(), reader.integer(UInt32.self) != nil,
            let owner = reader.sized().flatMap({ OwnerField($0) })
        else { return nil }
        self.init(
            key: key, value: reader.remainder(), user: owner.user, client: owner.client, version: version)
    }
}
