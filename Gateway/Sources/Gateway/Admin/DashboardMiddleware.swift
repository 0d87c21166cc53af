// The checks and headers that the calls of the operators' page have in common.
import HTTPTypes
import Hummingbird
import NIOCore

/// The context of a request for the operators' page, to which the middlewares add what they have verified.
struct DashboardContext<Parent: RequestContext>: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    var session: DashboardLogins.Session?
    var json: JSON = [:]

    init(context: Parent) { coreContext = context.coreContext }
}

/// The context of a call of an operator who has logged in.
struct OperatorContext<Parent: RequestContext>: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let session: DashboardLogins.Session
    /// The body of a change.
    let json: JSON

    init(context: DashboardContext<Parent>) throws {
        guard let session = context.session else { throw Problem(.cookie, "log in with the key") }
        coreContext = context.coreContext
        (self.session, json) = (session, context.json)
    }
}

/// Adds the headers by which the page loads its own script and style and nothing else, and cannot be framed.
struct DashboardHeadersMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var response = try await next(request, context)
        for (name, value) in Dashboard.headers { response.headers[HTTPField.Name(name)!] = value }
        return response
    }
}

/// Verifies the cookie of an operator's session.
struct OperatorMiddleware<Parent: RequestContext>: RouterMiddleware {
    let logins: DashboardLogins

    func handle(
        _ request: Request, context: DashboardContext<Parent>,
        next: (Request, DashboardContext<Parent>) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.session = request.cookies[Dashboard.cookieName].flatMap { logins.session(cookie: $0.value) }
        guard context.session != nil else { throw Problem(.cookie, "log in with the key") }
        return try await next(request, context)
    }
}

/// Checks that a request may change something, and reads its body.
struct ChangeMiddleware<Parent: RequestContext>: RouterMiddleware {
    let logins: DashboardLogins

    func handle(
        _ request: Request, context: DashboardContext<Parent>,
        next: (Request, DashboardContext<Parent>) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.json = try await JSON(ofPage: request)
        guard let session = context.session, let token = request.headers[.csrfToken],
            logins.isValid(csrfToken: token, of: session)
        else { throw Problem(.forbidden, "the request has no valid CSRF token") }
        return try await next(request, context)
    }
}

extension JSON {
    /// Reads a JSON object that the operators' page has posted.
    init(ofPage request: Request) async throws {
        if let site = request.headers[.secFetchSite], site != "same-origin" {
            throw Problem(.origin, "the request comes from another site")
        }
        let body: ByteBuffer
        do { body = try await request.body.collect(upTo: 16 * 1024) } catch is NIOTooManyBytesError {
            throw Problem(.tooLarge, "a call of the dashboard has at most 16 KiB")
        } catch { throw Problem(.malformed, "the body broke off, or is not well-formed") }
        try self.init(body: Array(body.readableBytesView), of: request)
    }
}

extension Dashboard {
    /// By name.
    static let headers = [
        "Content-Security-Policy":
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    ]
}

extension HTTPField.Name {
    static let csrfToken = HTTPField.Name("X-CSRF-Token")!
}
