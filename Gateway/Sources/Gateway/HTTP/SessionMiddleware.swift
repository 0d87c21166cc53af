import HTTPTypes
import Hummingbird

/// Verifies the session of a request.
struct SessionMiddleware<Parent: RequestContext>: RouterMiddleware {
    /// The proof of the session.
    enum Proof: Sendable {
        case signature
        /// The session may be one that a logout has ended a short time ago.
        case signatureOfLogout
        /// Without a signature, the cookie of event streams.
        case signatureOrCookie
    }

    let gateway: Gateway
    let proof: Proof

    func handle(
        _ request: Request, context: CallContext<Parent>,
        next: (Request, CallContext<Parent>) async throws -> Response
    ) async throws -> Response {
        var context = context
        let isByCookie = proof == .signatureOrCookie && request.headers[.session] == nil
        context.verified = isByCookie ? try await verifyCookie(request) : try await verifySignature(request)
        return try await next(request, context)
    }

    /// Verifies the signature of a request, which covers its body.
    ///
    /// The session must exist and the time be current before the body is read: nobody else makes the
    /// node hold one.
    private func verifySignature(_ request: Request) async throws -> VerifiedRequest {
        guard let signature = Signature(request.headers) else {
            throw Problem.unauthorized(
                .unsigned, "the headers X-Session, X-Time, X-Nonce and X-Signature are missing, or have the wrong form",
                time: try await gateway.sessions.time())
        }
        let claim = try await gateway.sessions.claim(signature, isLogout: proof == .signatureOfLogout)
        let body = try await gateway.bodies.body(of: request, maxBytes: gateway.configuration.maxBodyBytes)
        let session = try claim.verified(
            method: request.method.rawValue, target: request.head.path ?? "", body: body)
        return VerifiedRequest(session: session, body: body, claim: claim)
    }

    private func verifyCookie(_ request: Request) async throws -> VerifiedRequest {
        guard let cookie = request.cookies[gateway.configuration.cookieName] else {
            throw Problem.unauthorized(
                .cookie, "the request is not signed, and has no cookie", time: try await gateway.sessions.time())
        }
        try gateway.origins.checkCookie(request.headers)
        let session = try await gateway.sessions.verify(cookie: cookie.value)
        if let expected = try Query(request).text("session"), expected != session.id.description {
            throw Problem.unauthorized(.cookie, "the cookie is that of another session", time: session.verifiedAt)
        }
        return VerifiedRequest(session: session)
    }
}

/// Admits each signed request once. Only now is anything stored for it.
struct NonceMiddleware<Parent: RequestContext>: RouterMiddleware {
    let sessions: Sessions

    func handle(
        _ request: Request, context: CallContext<Parent>,
        next: (Request, CallContext<Parent>) async throws -> Response
    ) async throws -> Response {
        if let claim = context.verified?.claim { try await sessions.admit(claim) }
        return try await next(request, context)
    }
}

/// Watches the session that a request names, from before its verification on: an end of the session
/// after the verification is noticed.
struct WatchMiddleware<Parent: RequestContext>: RouterMiddleware {
    let gateway: Gateway

    func handle(
        _ request: Request, context: CallContext<Parent>,
        next: (Request, CallContext<Parent>) async throws -> Response
    ) async throws -> Response {
        var context = context
        let cookie = request.cookies[gateway.configuration.cookieName]?.value.prefix { $0 != "." }
        let id = SessionID(request.headers[.session] ?? cookie.map { String($0) } ?? "")
        let entry = id.map { gateway.watch.enter($0) }
        defer { withExtendedLifetime(entry) {} }
        context.watch = entry
        return try await next(request, context)
    }
}
