import HTTPTypes
import Hummingbird

/// The other origins whose pages may use the gateway.
struct Origins: Sendable {
    let allowed: Set<String>

    /// Checks the origin of a request that a browser's page has sent. Other programs send none.
    func check(_ origin: String?) throws(Problem) {
        guard let origin else { return }
        guard allowed.contains(origin) else {
            throw Problem(.origin, "the origin is not among the allowed origins")
        }
    }

    /// Checks that a request with a cookie comes from a page of the gateway's own origin, or of an allowed one: browsers add
    /// the cookie to requests of other pages too.
    func checkCookie(_ headers: HTTPFields) throws(Problem) {
        if let origin = headers[.origin] { return try check(origin) }
        guard headers[.secFetchSite] == "same-origin" else {
            throw Problem(.origin, "with a cookie, a request needs Sec-Fetch-Site: same-origin or an allowed Origin")
        }
    }

    /// Answers a preflight request.
    func preflight(_ request: Request, _ methods: String) -> Response {
        var response = Response.noContent
        guard let origin = request.headers[.origin], allowed.contains(origin) else { return response }
        response.headers[.accessControlAllowMethods] = methods
        response.headers[.accessControlAllowHeaders] =
            "Content-Type, Last-Event-ID, X-Session, X-Time, X-Nonce, X-Signature"
        response.headers[.accessControlMaxAge] = "600"
        return response
    }
}

/// Lets the page of an allowed origin read a reply.
struct OriginsMiddleware<Context: RequestContext>: RouterMiddleware {
    let origins: Origins

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        response.headers[.vary] = "Origin"
        guard let origin = request.headers[.origin], origins.allowed.contains(origin) else { return response }
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.accessControlAllowCredentials] = "true"
        response.headers[.accessControlExposeHeaders] = "Retry-After, WWW-Authenticate"
        return response
    }
}

/// Refuses requests of pages whose origin is not allowed.
struct OriginCheckMiddleware<Context: RequestContext>: RouterMiddleware {
    let origins: Origins

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        try origins.check(request.headers[.origin])
        return try await next(request, context)
    }
}

extension HTTPField.Name {
    static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
