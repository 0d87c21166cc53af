import HTTPTypes
public import Hummingbird

extension Gateway {
    /// Adds the calls of docs/http.md to a router.
    ///
    /// If the context is a `RemoteAddressRequestContext`, logins are limited by address too.
    public func addRoutes<Context: RequestContext>(to router: Router<Context>) {
        let sessions = path("/v1/sessions", [.post, .delete], on: router)
        sessions.group()
            .add(middleware: OriginCheckMiddleware(origins: origins))
            .add(middleware: LoginMiddleware(gateway: self))
            .group(context: LoginContext<Context>.self)
            .post(use: login)
        verified(sessions, by: .signatureOfLogout).delete(use: logout)

        verified(path("/v1/ack", [.post], on: router)).post(use: acknowledge)
        verified(path("/v1/send", [.post], on: router)).post(use: send)
        verified(watched(path("/v1/mail", [.get], on: router))).get(use: mail)
        verified(watched(path("/v1/events", [.get], on: router)), by: .signatureOrCookie).get(use: events)
        path("/v1/socket", [.get], on: router).group()
            .add(middleware: OriginCheckMiddleware(origins: origins))
            .get(use: refusedSocket)

        let others = calls("/v1/**", on: router)
        for method in HTTPRequest.Method.known {
            others.on("", method: method) { _, _ -> Response in
                throw Problem(.notFound, "there is no such call: see docs/http.md")
            }
        }
    }

    /// Returns the group of a path that has some methods. Requests with others are refused, and
    /// preflight requests are answered.
    func path<Context: RequestContext>(
        _ path: RouterPath, _ methods: [HTTPRequest.Method], on router: Router<Context>
    ) -> RouterGroup<CallContext<Context>> {
        let group = calls(path, on: router)
        let allowed = methods.map(\.rawValue).joined(separator: ", ")
        for method in HTTPRequest.Method.known where !methods.contains(method) {
            group.on("", method: method) { _, _ -> Response in throw Problem.methodNotAllowed(allowed: allowed) }
        }
        group.on("", method: .options) { [origins] request, _ in origins.preflight(request, allowed) }
        return group
    }

    /// Returns a group within a path whose requests have a session.
    ///
    /// Only a request with a valid signature counts for the limit of its session, and only one
    /// within the limit stores its nonce: nobody else can use up the limit, or store anything.
    func verified<Context: RequestContext>(
        _ path: RouterGroup<CallContext<Context>>, by proof: SessionMiddleware<Context>.Proof = .signature
    ) -> RouterGroup<SessionContext<Context>> {
        path.group()
            .add(middleware: SessionMiddleware(gateway: self, proof: proof))
            .add(middleware: RequestLimitMiddleware(limits: limits))
            .add(middleware: NonceMiddleware(sessions: sessions))
            .group(context: SessionContext<Context>.self)
    }

    /// Returns a group within a path whose replies end with their session.
    private func watched<Context: RequestContext>(
        _ path: RouterGroup<CallContext<Context>>
    ) -> RouterGroup<CallContext<Context>> {
        path.group().add(middleware: WatchMiddleware(gateway: self))
    }

    /// Returns the group of a path whose errors are answered with problems, which pages of allowed origins can read.
    private func calls<Context: RequestContext>(
        _ path: RouterPath, on router: Router<Context>
    ) -> RouterGroup<CallContext<Context>> {
        let group = router.group(path, context: CallContext<Context>.self)
            .add(middleware: OriginsMiddleware(origins: origins))
            .add(middleware: ProblemMiddleware(logger: logger))
        return ChildTaskRoutes(group: group).group()
    }
}

extension HTTPRequest.Method {
    /// The methods that get a problem as their reply where there is no such call: all that the
    /// parser of requests knows, by its names, except CONNECT and OPTIONS.
    fileprivate static let known: [HTTPRequest.Method] = [
        "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "ACL", "BIND", "CHECKOUT", "COPY", "LINK", "LOCK",
        "MSEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
        "MOVE", "NOTIFY", "PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE",
        "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
    ].compactMap { HTTPRequest.Method($0) }
}

/// Runs each call in a child task, whose memory is free when it ends. The connection's task would
/// keep it as long as the connection lasts.
private struct ChildTaskRoutes<Context: RequestContext & Sendable>: RouterMethods {
    private struct Call<Responder: HTTPResponder<Context>>: HTTPResponder {
        let responder: Responder

        func respond(to request: Request, context: Context) async throws -> Response {
            async let response = responder.respond(to: request, context: context)
            return try await response
        }
    }

    let group: RouterGroup<Context>

    func on<Responder: HTTPResponder>(_ path: RouterPath, method: HTTPRequest.Method, responder: Responder) -> Self
    where Responder.Context == Context {
        group.on(path, method: method, responder: Call(responder: responder))
        return self
    }

    func add(middleware: any MiddlewareProtocol<Request, Response, Context>) -> Self {
        group.add(middleware: middleware)
        return self
    }
}
