import QueueListen
import Testing

/// Two sends that are different.
struct SendPair: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var first: [Message]
    var second: [Message]

    /// A message, and the same one with a change.
    init(_ description: String, _ change: (inout Message) -> Void) {
        let message = Message(
            text: "a", type: "t", headers: ["h": "1", "content": "text"], ttl: .seconds(600), collapseKey: "k")
        var changed = message
        change(&changed)
        self.init(description, [message], [changed])
    }

    init(_ description: String, _ first: [Message], _ second: [Message]) {
        (testDescription, self.first, self.second) = (description, first, second)
    }
}

let sendPairs: [SendPair] = [
    SendPair("another body") { $0.body = [98] },
    SendPair("another type") { $0.type = "u" },
    SendPair("no type") { $0.type = nil },
    SendPair("no type, and an empty one", [Message(text: "a")], [Message(text: "a", type: "")]),
    SendPair("another header") { $0.headers["h"] = "2" },
    SendPair("a header less") { $0.headers["h"] = nil },
    SendPair("a header more") { $0.headers["i"] = "" },
    SendPair("another form of the content") { $0.headers["content"] = "json" },
    SendPair("another time to live") { $0.ttl = .seconds(601) },
    SendPair("no time to live") { $0.ttl = nil },
    SendPair("another collapse key") { $0.collapseKey = "l" },
    SendPair("no collapse key") { $0.collapseKey = nil },
    SendPair(
        "another spelling of the same characters", [Message(text: "a", type: "\u{F6}")],
        [Message(text: "a", type: "o\u{308}")]),
    SendPair(
        "two messages, and one with the bytes of both", [Message(text: "a"), Message(text: "b")],
        [Message(bytes: [97, 0xFF, 0xFF, 98])]),
    SendPair(
        "a type, and a body that begins with it", [Message(text: "b", type: "a")],
        [Message(bytes: [97, 0xFF, 98], type: "")]),
    SendPair("a message more", [Message(text: "a")], [Message(text: "a"), Message(text: "")]),
]
