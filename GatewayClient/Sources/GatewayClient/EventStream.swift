import AsyncHTTPClient
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A stream of server-sent events from one node.
final class EventStream: MailConnection {
    private let configuration: GatewayClientConfiguration
    private let body: StreamBody
    private var parser = ServerSentEventParser()
    private var isOpen = false

    /// Opens a stream.
    ///
    /// - Throws: the error of the reply; `.unexpectedReply` if it is no event stream.
    init(_ client: GatewayClient, after cursor: String?, at node: String) async throws(GatewayError) {
        configuration = client.configuration
        let response = try await client.open(
            "GET", "/v1/events" + (cursor.map { "?after=\($0)" } ?? ""), accept: "text/event-stream", at: node,
            within: configuration.openTimeout)
        guard response.headers.first(name: "Content-Type")?.hasPrefix("text/event-stream") == true else {
            throw GatewayError(.unexpectedReply, "the reply is not a stream of events")
        }
        body = StreamBody(response)
    }

    func next() async throws(GatewayError) -> [MailItem]? {
        // A proxy that collects the whole reply passes nothing: the gateway sends its first line at once.
        let limit = isOpen ? configuration.silenceTimeout : configuration.openTimeout
        guard let piece = try await body.next(within: limit) else { return nil }
        var items: [MailItem] = isOpen ? [] : [.opened]
        isOpen = true
        for event in try parser.parse(piece.readableBytesView) { items += try Self.items(of: event) }
        return items
    }

    private struct Fields: Decodable {
        var status: String?
        var first: Int?
        var cursor: String?
        var reason: String?
        var retry: Int?
    }

    /// Translates an event; one of an unknown name only moves the position.
    static func items(of event: ServerSentEvent) throws(GatewayError) -> [MailItem] {
        var items: [MailItem] = event.retry.map { [.retry(.milliseconds($0))] } ?? []
        guard let text = event.data else { return items + position(event) }
        let name = event.name ?? "message"
        if name == "message" { return items + [.message(try GatewayMessage(Array(text.utf8)[...]))] }
        if name == "superseded" { return items + [.superseded] }
        guard name == "gap" || name == "bye" else { return items + position(event) }
        let data: Fields
        do { data = try JSONDecoder().decode(Fields.self, from: Data(text.utf8)) } catch {
            throw GatewayError(.unexpectedReply, "an event \(name) is not as expected", underlying: error)
        }
        if name == "gap" {
            items.append(.gap(try GatewayGap(status: data.status, first: data.first, cursor: data.cursor)))
        } else if data.reason == "expired" {
            throw GatewayError(.unknownSession, "the session has expired")
        } else {
            items.append(.bye(.milliseconds(max(0, data.retry ?? 1000))))
        }
        return items
    }

    private static func position(_ event: ServerSentEvent) -> [MailItem] {
        event.id.map { $0.isEmpty ? [] : [.position($0)] } ?? []
    }
}
