/// One block of an event stream: the fields before an empty line.
struct ServerSentEvent: Equatable, Sendable {
    var id: String?
    var name: String?
    /// The lines of data, joined; `nil` if there are none.
    var data: String?
    /// In milliseconds.
    var retry: Int?
}

/// Reads a stream of server-sent events, in pieces of any size.
struct ServerSentEventParser {
    /// The maximum number of bytes of one event. A stream that sends more without an end of the event is not the
    /// gateway's.
    static let maxEventBytes = 16 << 20

    /// The bytes of the line that is not complete.
    private var line: [UInt8] = []
    private var event = ServerSentEvent()
    /// The bytes of the event so far.
    private var eventBytes = 0
    private var isFirstLine = true
    /// A line feed that follows belongs to the carriage return that has ended the line.
    private var endedWithCarriageReturn = false

    /// Returns the events that a piece of the stream completes.
    ///
    /// - Throws: `.unexpectedReply` if an event is too large.
    mutating func parse(_ bytes: some Collection<UInt8>) throws(GatewayError) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            let isSecondHalf = endedWithCarriageReturn && byte == UInt8(ascii: "\n")
            endedWithCarriageReturn = byte == UInt8(ascii: "\r")
            if isSecondHalf { continue }
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                line.append(byte)
                eventBytes += 1
                guard eventBytes <= Self.maxEventBytes else {
                    throw GatewayError(.unexpectedReply, "an event has more than \(Self.maxEventBytes) bytes")
                }
                continue
            }
            if let complete = endLine() { events.append(complete) }
        }
        return events
    }

    /// Takes the line that has ended. Returns the event that it completes.
    private mutating func endLine() -> ServerSentEvent? {
        defer { line.removeAll(keepingCapacity: line.count < 65536) }
        var content = line[...]
        if isFirstLine {
            isFirstLine = false
            if content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
        }
        guard !content.isEmpty else {
            defer { (event, eventBytes) = (ServerSentEvent(), 0) }
            return event == ServerSentEvent() ? nil : event
        }
        // A comment has an empty name.
        let name = content.prefix { $0 != UInt8(ascii: ":") }
        var value = content[name.endIndex...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: name, as: UTF8.self) {
        case "data": event.data = event.data.map { $0 + "\n" + text } ?? text
        case "event": event.name = text
        case "id" where !value.contains(0): event.id = text
        case "retry" where !value.isEmpty && value.allSatisfy({ (0x30...0x39).contains($0) }): event.retry = Int(text)
        default: break
        }
        return nil
    }
}
