// The calls of the operators' page.
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import QueueListen
import RedisDC
import ServiceLifecycle

extension Dashboard {
    // MARK: Login

    func login(_ request: Request, context: some RequestContext) async throws -> Response {
        let json = try await JSON(ofPage: request)
        guard let key = json["key"]?.string else { throw Problem(.malformed, "a login has the field key") }
        switch logins.logIn(key: key) {
        case .accepted(let cookie):
            let age = Int(DashboardLogins.lifetime.nanoseconds / 1_000_000_000)
            return Self.settingCookie(cookie, maxAge: age)
        case .wrongKey:
            logger.warning("a login at the dashboard with a wrong key")
            throw Problem(.badCredential, "the key is wrong")
        case .limited(let time): throw Problem.tooManyRequests(retryAfter: .nanoseconds(time.nanoseconds))
        }
    }

    func session(_ request: Request, context: OperatorContext<some RequestContext>) -> Response {
        Response(.ok, ["csrf": .string(context.session.csrfToken)])
    }

    func logout(_ request: Request, context: OperatorContext<some RequestContext>) -> Response {
        logins.logOut(context.session)
        return Self.settingCookie("", maxAge: 0)
    }

    private static func settingCookie(_ value: String, maxAge: Int) -> Response {
        var response = Response.noContent
        response.headers[.setCookie] =
            "\(cookieName)=\(value); Path=/admin; Max-Age=\(maxAge); HttpOnly; SameSite=Strict"
        return response
    }

    // MARK: Changes

    func announce(_ request: Request, context: OperatorContext<some RequestContext>) throws -> Response {
        guard let action = DashboardAction(context.json) else { throw Problem(.malformed, "there is no such action") }
        let confirmation = logins.announce(action, context.session)
        return Response(.ok, ["question": .string(action.question), "confirmation": .string(confirmation)])
    }

    func confirm(_ request: Request, context: OperatorContext<some RequestContext>) async throws -> Response {
        guard let token = context.json["confirmation"]?.string,
            let action = logins.confirmed(token: token, context.session)
        else { throw Problem(.forbidden, "the confirmation is unknown, was used, or has expired: begin again") }
        let count = try await run(action)
        await reader.forget()
        return Response(.ok, ["count": JSON(count)])
    }

    /// - Returns: the number of claims that were released, or of letters that were sent.
    private func run(_ action: DashboardAction) async throws -> Int {
        let count: Int
        switch action {
        case .release(let resource, let holder):
            count = try await coordinator.forceRelease(resource, holder: holder)
            logger.notice(
                "an operator has released a resource",
                metadata: ["resource": "\(resource)", "holder": "\(holder ?? "all")", "released": "\(count)"])
        case .requeue(let mailbox, let limit):
            do {
                count = try await DeadLetters(try office.mailbox(mailbox)).requeue(limit, office)
            } catch let foreign as DeadLetters.ForeignMessage {
                throw Problem(
                    .refused,
                    "message \(foreign.index) of \(mailbox) is no dead letter: read it with `redisdc mail peek "
                        + "\(mailbox)`, then acknowledge it with the device \(DeadLetters.device)")
            }
            logger.notice(
                "an operator has requeued dead letters", metadata: ["mailbox": "\(mailbox)", "count": "\(count)"])
        }
        return count
    }

    // MARK: Events

    func events(_ request: Request, context: OperatorContext<some RequestContext>) async throws -> Response {
        let cookie = request.cookies[Self.cookieName]?.value ?? ""
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream"],
            body: ResponseBody { writer in
                try await ClientConnection.cancelling { cancel in
                    try await withGracefulShutdownHandler {
                        while self.logins.session(cookie: cookie) != nil {
                            var text = ByteBuffer(string: "event: snapshot\ndata: ")
                            text.writeBytes(await self.reader.snapshot())
                            text.writeString("\n\n")
                            try await writer.write(text)
                            try await Task.sleep(for: self.interval)
                        }
                        // The session has ended: the page asks for the key.
                        try await writer.write(ByteBuffer(string: "event: expired\ndata:\n\n"))
                    } onGracefulShutdown: {
                        cancel()
                    }
                }
                try await writer.finish(nil)
            })
    }
}
