// A message as it lies in Redis: what the scripts know of it, and what only senders and receivers do.

/// Type, id, headers and body: lines, an empty line, the body.
///
/// ```
/// id=6b1f…-17/0
/// type=chat
/// +language=en
///
/// hello
/// ```
enum Envelope {
    static func encode(_ message: Message, id: String) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(message.body.count + id.utf8.count + 16 + (message.type?.utf8.count ?? 0))
        func line(_ name: String, _ value: String) {
            bytes += name.utf8
            bytes.append(UInt8(ascii: "="))
            bytes += value.utf8
            bytes.append(UInt8(ascii: "\n"))
        }
        line("id", id)
        if let type = message.type { line("type", type) }
        for (name, value) in message.headers.sorted(by: { $0.key < $1.key }) { line("+" + name, value) }
        bytes.append(UInt8(ascii: "\n"))
        bytes += message.body
        return bytes
    }

    struct Content {
        var id = ""
        var type: String?
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    /// What is no envelope is all body: messages may be put there by others.
    static func decode(_ bytes: ArraySlice<UInt8>) -> Content {
        var content = Content()
        var rest = bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[rest.startIndex..<end]
            rest = rest[(end + 1)...]
            if line.isEmpty {
                content.body = Array(rest)
                return content
            }
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { break }
            let name = String(decoding: line[line.startIndex..<equals], as: UTF8.self)
            let value = String(decoding: line[(equals + 1)...], as: UTF8.self)
            switch name {
            case "id": content.id = value
            case "type": content.type = value
            case _ where name.hasPrefix("+"): content.headers[String(name.dropFirst())] = value
            default: break
            }
        }
        return Content(body: Array(bytes))
    }
}

/// An element of a mailbox's list: `<c1I6c8I6I6I6Bc0` in the words of Lua's struct library, then the envelope.
struct StoredMessage {
    /// Collapsed: only its place is left.
    var isEmpty: Bool
    var index: Int
    var tag: UInt64
    /// Milliseconds since 1970, by the server's clock.
    var sent: Int
    /// The same, or 0.
    var expires: Int
    var collapseKey: String?
    var envelope: ArraySlice<UInt8>

    static let headerSize = 34

    /// `nil`: not one of ours.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headerSize, bytes[0] == UInt8(ascii: "M") || bytes[0] == UInt8(ascii: "X") else {
            return nil
        }
        func number(_ at: Int) -> Int { (0..<6).reduce(0) { $0 | Int(bytes[at + $1]) << (8 * $1) } }
        let end = Self.headerSize + Int(bytes[33])
        guard bytes.count >= end, let tag = UInt64(mark: bytes[7..<15]) else { return nil }
        isEmpty = bytes[0] == UInt8(ascii: "X")
        index = number(1)
        self.tag = tag
        sent = number(15)
        expires = number(21)
        collapseKey = end > Self.headerSize ? String(decoding: bytes[Self.headerSize..<end], as: UTF8.self) : nil
        envelope = bytes[end...]
    }
}
