#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A call of docs/http.md: a request, and the type of its reply.
protocol Call: Sendable {
    associatedtype Reply: Sendable
    var method: String { get }
    /// The path and the query exactly as they are sent.
    var target: String { get }
    /// JSON; empty for a request without a body.
    var body: [UInt8] { get }
    /// Reads the body of a successful reply.
    ///
    /// - Throws: `.unexpectedReply`.
    func reply(_ body: [UInt8]) throws(GatewayError) -> Reply
}

extension Call {
    var body: [UInt8] { [] }

    /// Decodes a reply.
    func decode<Value: Decodable>(_ type: Value.Type, _ body: [UInt8]) throws(GatewayError) -> Value {
        do { return try JSONDecoder().decode(type, from: Data(body)) } catch {
            // The gateway has performed the call if it has replied with a success.
            throw GatewayError(
                .unexpectedReply, "the reply to \(method) \(target.prefix { $0 != "?" }) is not as expected",
                mayHaveRun: true, underlying: error)
        }
    }
}

/// `POST /v1/sessions`.
struct LoginCall: Call {
    struct Reply: Sendable, Decodable {
        var session: String
        var token: String
        var expires: Int
        var time: Int
        var cursor: String
    }

    var user: String
    var device: String
    /// JSON.
    var credential: [UInt8]

    let method = "POST"
    let target = "/v1/sessions"
    var body: [UInt8] {
        RawJSON.object([
            ("user", RawJSON.string(user)), ("device", RawJSON.string(device)), ("credential", credential),
        ])
    }

    func reply(_ body: [UInt8]) throws(GatewayError) -> Reply { try decode(Reply.self, body) }
}

/// `DELETE /v1/sessions`.
struct LogoutCall: Call {
    let method = "DELETE"
    let target = "/v1/sessions"
    func reply(_ body: [UInt8]) throws(GatewayError) {}
}

/// `POST /v1/send`.
struct SendCall: Call {
    var recipients: [String]
    var id: String
    /// Each one a JSON object.
    var messages: [[UInt8]]

    let method = "POST"
    let target = "/v1/send"
    var body: [UInt8] {
        RawJSON.object([
            ("to", RawJSON.array(recipients.map { RawJSON.string($0) })), ("id", RawJSON.string(id)),
            ("messages", RawJSON.array(messages)),
        ])
    }

    private struct Indices: Decodable { var indices: [String: [Int]] }

    func reply(_ body: [UInt8]) throws(GatewayError) -> SendReceipt {
        let indices = try decode(Indices.self, body).indices
        return SendReceipt(
            id: id,
            indices: indices.compactMapValues { pair in
                pair.count == 2 && pair[0] <= pair[1] ? pair[0]...pair[1] : nil
            })
    }
}

/// `POST /v1/ack`.
struct AcknowledgeCall: Call {
    var cursor: String

    let method = "POST"
    let target = "/v1/ack"
    var body: [UInt8] { RawJSON.object([("cursor", RawJSON.string(cursor))]) }
    func reply(_ body: [UInt8]) throws(GatewayError) {}
}

/// A call of the application.
struct ApplicationCall<Reply: Decodable & Sendable>: Call {
    let method = "POST"
    let target: String
    let body: [UInt8]

    /// - Throws: `.invalidContent`.
    init(target: String, _ content: some Encodable) throws(GatewayError) {
        self.target = target
        do { body = Array(try JSONEncoder().encode(content)) } catch {
            throw GatewayError(.invalidContent, "the content of \(target) cannot be encoded", underlying: error)
        }
    }

    func reply(_ body: [UInt8]) throws(GatewayError) -> Reply { try decode(Reply.self, body) }
}

/// `GET /v1/mail`.
struct PollCall: Call {
    var after: String?
    /// In seconds.
    var wait: Int

    let method = "GET"
    var target: String { "/v1/mail?wait=\(wait)" + (after.map { "&after=\($0)" } ?? "") }

    private struct Page: Decodable {
        var status: String
        var cursor: String
        var first: Int?
    }

    /// Returns what the page says, the position at its end last.
    func reply(_ body: [UInt8]) throws(GatewayError) -> [MailItem] {
        let page = try decode(Page.self, body)
        var items: [MailItem] = []
        switch page.status {
        case "messages", "timedOut": break
        case "superseded": return [.superseded]
        default: items.append(.gap(try GatewayGap(status: page.status, first: page.first, cursor: page.cursor)))
        }
        guard let text = RawJSON.members(of: body[...])?["messages"], let messages = RawJSON.elements(of: text) else {
            throw GatewayError(.unexpectedReply, "a page has no messages")
        }
        for message in messages { items.append(.message(try GatewayMessage(message))) }
        return items + [.position(page.cursor)]
    }
}
