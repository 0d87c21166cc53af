// The calls that read, acknowledge and send.
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOConcurrencyHelpers
import NIOCore
import QueueListen
import ServiceLifecycle

extension Gateway {
    /// GET /v1/mail
    func mail(_ request: Request, _ address: String?) async throws -> Response {
        // Before the verification: an end of the session after it is noticed.
        let entry = request.headers[.session].flatMap { SessionID($0) }.map { watch.enter($0) }
        defer { withExtendedLifetime(entry) {} }
        let (session, _) = try await verified(request)
        let query = Query(request)
        let (after, acknowledged) = (try query.cursor("after"), try query.cursor("ack"))
        let wait = try query.integer("wait", 0...60) ?? 30
        let limit = try query.integer("limit", 1...1000) ?? 100
        let place = try polls.open(session)
        let reader = try reader(for: session)
        // An invalid one has no effect: the status says what happened to the mailbox.
        if let acknowledged { _ = try await acknowledge(acknowledged, reader) }
        let delivery = try await whileServing(entry?.signal ?? EndSignal()) {
            try await withThrowingDiscardingTaskGroup { group in
                defer { group.cancelAll() }
                if wait > 0, let whileListening = self.whileListening {
                    group.addTask { await whileListening(Caller(session)) }
                }
                let timeout = min(.seconds(wait), max(.zero, session.end - .now))
                return try await Self.listen(reader, after: after, limit: limit, timeout: timeout)
            }
        }
        // What was received after the end of the session is not delivered.
        guard ContinuousClock.now < session.end else {
            throw Problem.unauthorized(.unknownSession, "the session has expired", time: session.expires)
        }
        if case .superseded? = delivery?.status ?? .superseded {
            // By a newer reader, a newer login or a logout.
            do { try await sessions.check(session.id) } catch {
                guard error.kind == .loggedInElsewhere else { throw error }
            }
        }
        return Self.reply(Self.page(delivery, after: after), place)
    }

    /// A reply that counts as a poll of its session until it has left: a client that does not read cannot collect replies.
    private static func reply(_ page: JSON, _ place: OpenStreams.Place) -> Response {
        let page = ByteBuffer(bytes: page.bytes)
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(contentLength: page.readableBytes) { writer in
                defer { place.close() }
                try await write(page, to: &writer)
                try await writer.finish(nil)
            })
    }

    func reader(for session: Session) throws(Problem) -> DeviceReader {
        do throws(QueueListenError) { return try office.mailbox(session.user).reader(device: session.device) } catch {
            throw Problem(error)
        }
    }

    private static func listen(
        _ reader: DeviceReader, after: Cursor?, limit: Int, timeout: Duration
    ) async throws(Problem) -> Delivery {
        do throws(QueueListenError) {
            return try await reader.listen(
                after: after, limit: limit, maxBytes: GatewayConfiguration.maxPageBytes, timeout: timeout)
        } catch {
            throw Problem(error)
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
        return try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await ClientConnection.whileOpen(onClose: { call.cancel() }) {
                    try await signal.whileOpen { _ in
                        hasEnded.withLockedValue { $0 = true }
                        call.cancel()
                    } _: {
                        do { return try await call.value } catch {
                            guard hasEnded.withLockedValue({ $0 }) else { throw error }
                            return nil
                        }
                    }
                }
            } onGracefulShutdown: {
                call.cancel()
            }
        } onCancel: {
            call.cancel()
        }
    }

    /// - Parameters:
    ///   - delivery: `nil` if the session has ended.
    ///   - position: where the client reads, which does not change when it is superseded.
    private static func page(_ delivery: Delivery?, after position: Cursor?) -> JSON {
        var cursor = delivery?.cursor ?? .none
        let (status, first): (String, Int?)
        switch delivery?.status ?? .superseded {
        case .messages: (status, first) = ("messages", nil)
        case .timedOut: (status, first) = ("timedOut", nil)
        case .superseded:
            (status, first) = ("superseded", nil)
            cursor = position ?? cursor
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

    // MARK: Acknowledge

    /// POST /v1/ack
    func acknowledge(_ request: Request, _ address: String?) async throws -> Response {
        let (session, body) = try await verified(request)
        let text = try Self.object(body, of: request)["cursor"]?.string
        try await acknowledge(text, of: session)
        return .noContent
    }

    /// Acknowledges messages of a session's device.
    ///
    /// - Throws: `malformed`, `cursor`, `unavailable`.
    func acknowledge(_ text: String?, of session: Session) async throws(Problem) {
        guard let cursor = text.flatMap({ Cursor($0) }) else {
            throw Problem(.malformed, "an acknowledgement has a cursor")
        }
        guard try await acknowledge(cursor, try reader(for: session)) else {
            throw Problem(.cursor, "the cursor is not, or no longer, in this mailbox: nothing was acknowledged")
        }
    }

    private func acknowledge(_ cursor: Cursor, _ reader: DeviceReader) async throws(Problem) -> Bool {
        do throws(QueueListenError) { return try await reader.acknowledge(cursor) } catch { throw Problem(error) }
    }

    // MARK: Send

    /// POST /v1/send
    func send(_ request: Request, _ address: String?) async throws -> Response {
        let (session, body) = try await verified(request)
        return Response(.ok, try await send(try Self.object(body, of: request), from: session))
    }

    /// Sends a client's messages, if the application allows it.
    ///
    /// - Returns: the reply.
    func send(_ json: JSON, from session: Session) async throws(Problem) -> JSON {
        let call = try SendCall(json, sender: session.user)
        let attempt = SendAttempt(
            sender: session.user, device: session.device, recipients: call.recipients, types: call.messages.map(\.type))
        let isAllowed: Bool
        do { isAllowed = try await authorize(attempt) } catch {
            logger.error("the authorization failed", metadata: ["error": "\(error)"])
            throw Problem.unavailable("the send cannot be checked at present", mayHaveRun: false)
        }
        guard isAllowed else { throw Problem(.forbidden, "the application does not allow this send") }
        do throws(QueueListenError) {
            let receipt = try await office.send(
                call.messages, to: call.recipients, id: call.id.owned(by: session.user))
            let indices = receipt.indices.sorted { $0.key < $1.key }.map { name, range in
                JSON.Member(name: name, value: [JSON(range.lowerBound), JSON(range.upperBound)])
            }
            return ["id": .string(call.id), "indices": .object(indices)]
        } catch { throw Problem(error) }
    }
}

/// The query of a request.
struct Query {
    private let parameters: [(name: String, value: String)]

    init(_ request: Request) { self.init(target: request.head.path ?? "") }

    /// - Parameter target: a path and a query, as they were sent.
    init(target: String) {
        parameters = URI(target).queryParameters.map { (String($0.key), String($0.value)) }
    }

    /// Returns a parameter; `nil` if it is missing.
    ///
    /// - Throws: `malformed` if it is given twice.
    func text(_ name: String) throws(Problem) -> String? {
        let values = parameters.filter { $0.name == name }
        guard values.count < 2 else { throw Problem(.malformed, "the parameter \(name) is given twice") }
        return values.first?.value
    }

    func cursor(_ name: String) throws(Problem) -> Cursor? {
        guard let text = try text(name) else { return nil }
        guard let cursor = Cursor(text) else { throw Problem(.malformed, "the parameter \(name) is not a cursor") }
        return cursor
    }

    func integer(_ name: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = try text(name) else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw Problem(
                .malformed, "the parameter \(name) is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }
}
