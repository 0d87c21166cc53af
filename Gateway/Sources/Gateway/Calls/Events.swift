// GET /v1/events: the messages of a mailbox as server-sent events.
import HTTPTypes
import Hummingbird
import QueueListen

/// A read of the messages after a position, until the stream ends.
struct EventsCall: Sendable {
    /// `nil` continues after the last acknowledged message.
    var after: Cursor?
    /// Whether a browser repeats the call by itself after the event `superseded`.
    var isRepeated: Bool

    /// - Throws: `not-acceptable`, `malformed`.
    init(_ request: Request) throws(Problem) {
        guard Self.accepts(request, "text/event-stream") else {
            throw Problem(.notAcceptable, "this call replies with text/event-stream")
        }
        let last = request.headers[.lastEventID]
        isRepeated = last?.hasSuffix(EventStream.supersededSuffix) == true
        guard !isRepeated else { return }
        after = try Query(request).cursor("after")
        guard let last, !last.isEmpty else { return }
        guard let position = Cursor(last) else { throw Problem(.malformed, "Last-Event-ID is not a cursor") }
        after = position
    }

    private static func accepts(_ request: Request, _ type: String) -> Bool {
        guard let accept = request.headers[.accept] else { return true }
        let major = type.prefix { $0 != "/" }
        return accept.split(separator: ",").contains { range in
            let name = (range.split(separator: ";").first ?? "").trimmed.lowercased()
            return name == type || name == "*/*" || name == major + "/*"
        }
    }
}

extension Gateway {
    func events(_ request: Request, context: SessionContext<some RequestContext>) async throws -> Response {
        let call = try EventsCall(request)
        // 204 is the only reply after which a browser does not reconnect.
        guard !call.isRepeated else { return .noContent }
        let place = try streams.open(context.session)
        let stream = try MailStream(self, context.session, context.watch)
        let events = EventStream(stream: stream, configuration: configuration)
        return Response(
            status: .ok,
            headers: [
                .contentType: "text/event-stream", .cacheControl: "no-store",
                HTTPField.Name("X-Accel-Buffering")!: "no",
            ],
            body: ResponseBody { writer in
                defer { place.close() }
                try await events.write(after: call.after, to: &writer)
                try await writer.finish(nil)
            })
    }
}

extension HTTPField.Name {
    static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
