// GET /v1/mail: reads a page of a mailbox, for which it waits.
import HTTPTypes
import Hummingbird
import NIOConcurrencyHelpers
import NIOCore
import QueueListen
import ServiceLifecycle

/// A read of the messages after a position.
struct MailCall: Sendable {
    /// `nil` continues after the last acknowledged message.
    var after: Cursor?
    /// The position up to which messages are acknowledged before the read.
    var acknowledged: Cursor?
    var wait: Duration
    var limit: Int

    /// - Throws: `malformed`.
    init(_ query: Query) throws(Problem) {
        (after, acknowledged) = (try query.cursor("after"), try query.cursor("ack"))
        wait = .seconds(try query.integer("wait", 0...60) ?? 30)
        limit = try query.integer("limit", 1...1000) ?? 100
    }
}

/// A page. It counts as a poll of its session until it has left: a client that does not read cannot collect replies.
struct MailReply: Reply {
    /// `nil` if the session has ended.
    var delivery: Delivery?
    /// The position at which the client reads, which does not change when it is superseded.
    var after: Cursor?
    var place: OpenStreams.Place

    var json: JSON {
        var cursor = delivery?.cursor ?? .none
        let (status, first): (String, Int?)
        switch delivery?.status ?? .superseded {
        case .messages: (status, first) = ("messages", nil)
        case .timedOut: (status, first) = ("timedOut", nil)
        case .superseded:
            (status, first) = ("superseded", nil)
            cursor = after ?? cursor
        case .reset: (status, first) = ("reset", nil)
        case .forked: (status, first) = ("forked", nil)
        case .truncated(let index): (status, first) = ("truncated", index)
        }
        let json: JSON = [
            "status": .string(status), "messages": .array((delivery?.messages ?? []).map { JSON($0) }),
            "cursor": .string(cursor.description), "skipped": JSON(delivery?.skipped ?? 0),
        ]
        return json.with(("first", first.map { JSON($0) }))
    }

    func response(from request: Request, context: some RequestContext) throws -> Response {
        let (page, place) = (ByteBuffer(bytes: json.bytes), place)
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(contentLength: page.readableBytes) { writer in
                defer { place.close() }
                try await EventStream.write(page, to: &writer)
                try await writer.finish(nil)
            })
    }
}

extension Gateway {
    func mail(_ request: Request, context: SessionContext<some RequestContext>) async throws -> MailReply {
        let session = context.session
        let call = try MailCall(Query(request))
        let place = try polls.open(session)
        let reader = try reader(for: session)
        // An invalid one has no effect: the status says what happened to the mailbox.
        if let acknowledged = call.acknowledged {
            _ = try await withDevice(of: session, reader) { try await reader.acknowledge(acknowledged) }
        }
        let delivery = try await whileServing(context.watch?.signal ?? EndSignal()) {
            try await self.withDevice(of: session, reader) { try await self.listen(call, reader, session) }
        }
        // Messages that arrived after the end of the session are not delivered.
        guard ContinuousClock.now < session.end else {
            throw Problem.unauthorized(.unknownSession, "the session has expired", time: session.expires)
        }
        if case .superseded? = delivery?.status ?? .superseded { try await checkWasSuperseded(session) }
        return MailReply(delivery: delivery, after: call.after, place: place)
    }

    /// Reads the mailbox, beside the application's function.
    private func listen(_ call: MailCall, _ reader: DeviceReader, _ session: Session) async throws -> Delivery {
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            if call.wait > .zero, let whileListening {
                group.addTask { await whileListening(Caller(session)) }
            }
            let timeout = min(call.wait, max(.zero, session.end - .now))
            return try await reader.listen(
                after: call.after, limit: call.limit, maxBytes: GatewayConfiguration.maxPageBytes, timeout: timeout)
        }
    }

    /// Checks that a poll has ended by a newer reader or a newer login, and not by a logout.
    private func checkWasSuperseded(_ session: Session) async throws {
        do { try await sessions.check(session.id) } catch let problem as Problem
            where problem.kind == .loggedInElsewhere
        {
            return
        }
    }

    /// Runs a call that waits, and ends it when the session ends, the node stops or the client has gone.
    ///
    /// - Returns: `nil` if the session has ended.
    private func whileServing(
        _ signal: EndSignal<SessionWatch.End>, _ body: @escaping @Sendable () async throws -> Delivery
    ) async throws -> Delivery? {
        let call = Task { try await body() }
        let hasEnded = NIOLockedValueBox(false)
        let end: @Sendable (SessionWatch.End) -> Void = { _ in
            hasEnded.withLockedValue { $0 = true }
            call.cancel()
        }
        do {
            return try await withTaskCancellationOrGracefulShutdownHandler {
                try await ClientConnection.whileOpen(onClose: { call.cancel() }) {
                    try await signal.whileOpen(onEnd: end) { try await call.value }
                }
            } onCancelOrGracefulShutdown: {
                call.cancel()
            }
        } catch {
            guard hasEnded.withLockedValue({ $0 }) else { throw error }
            return nil
        }
    }
}
