/// The part of a stored message that only senders and receivers read: id, type, headers and body.
///
/// Lines, an empty line, the body:
///
/// ```
/// id=6b1f…-17/0
/// order=match 7
/// type=chat
/// +language=en
///
/// hello
/// ```
enum Envelope {
    struct Content {
        var id = ""
        var orderKey: String?
        var answerAddress: AnswerAddress?
        var answers: AnsweredQuestion?
        var type: String?
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

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
        // The second line, where the scripts find it.
        if let orderKey = message.orderKey { line("order", orderKey) }
        if let address = message.answerAddress { line("ask", address.line) }
        if let question = message.answers { line("answers", question.line) }
        if let type = message.type { line("type", type) }
        for (name, value) in message.headers.sorted(by: { $0.key < $1.key }) { line("+" + name, value) }
        bytes.append(UInt8(ascii: "\n"))
        bytes += message.body
        return bytes
    }

    /// The envelope of a message of a send with a longer id.
    ///
    /// - Parameter envelope: one that ``encode(_:id:)`` has made: its first line is the id, which ends with the number of the
    ///   message after a slash.
    static func appending(_ suffix: String, toSendIDOf envelope: [UInt8]) -> [UInt8] {
        guard let end = envelope.firstIndex(of: UInt8(ascii: "\n")),
            let slash = envelope[..<end].lastIndex(of: UInt8(ascii: "/"))
        else { return envelope }
        return Array(envelope[..<slash]) + suffix.utf8 + envelope[slash...]
    }

    /// Decodes an envelope. Bytes in any other format are all body, because other programs may send
    /// messages too.
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
            let name = line[line.startIndex..<equals]
            let value = String(decoding: line[(equals + 1)...], as: UTF8.self)
            // By bytes: in a string, a combining mark after the plus sign would be one character with it.
            if name.first == UInt8(ascii: "+") {
                content.headers[String(decoding: name.dropFirst(), as: UTF8.self)] = value
            } else if name.elementsEqual("id".utf8) {
                content.id = value
            } else if name.elementsEqual("type".utf8) {
                content.type = value
            } else if name.elementsEqual("order".utf8) {
                content.orderKey = value
            } else if name.elementsEqual("ask".utf8) {
                content.answerAddress = AnswerAddress(line: value)
            } else if name.elementsEqual("answers".utf8) {
                content.answers = AnsweredQuestion(line: value)
            }
        }
        return Content(body: Array(bytes))
    }
}
