// POST /v1/sessions: begins a session.
import HTTPTypes
import Hummingbird
import Logging
import QueueListen

/// The content of a login.
struct LoginCall: Sendable {
    var user: String
    var device: String
    var credential: JSON

    /// - Throws: `malformed`.
    init(_ json: JSON) throws(Problem) {
        guard let user = json["user"]?.string, let device = json["device"]?.string, let credential = json["credential"]
        else { throw Problem(.malformed, "a login has the fields user, device and credential") }
        (self.user, self.device, self.credential) = (user, device, credential)
    }
}

/// A session that has begun, with the position up to which its device has acknowledged.
struct LoginReply: Reply {
    var new: NewSession
    var cursor: Cursor
    var cookie: SessionCookie

    var json: JSON {
        [
            "session": .string(new.session.id.description), "token": .string(new.token),
            "expires": JSON(new.session.expires), "time": JSON(new.session.verifiedAt),
            "cursor": .string(cursor.description),
        ]
    }

    func response(from request: Request, context: some RequestContext) throws -> Response {
        var response = Response(.created, json)
        response.headers[.setCookie] = cookie.header
        return response
    }
}

extension Gateway {
    func login(_ request: Request, context: LoginContext<some RequestContext>) async throws -> LoginReply {
        let login = context.login
        let reader = try office.mailbox(login.user).reader(device: login.device)
        let new = try await sessions.login(
            user: login.user, device: login.device, lifetime: configuration.sessionLifetime)
        do {
            let cursor = try await register(reader, of: new.session)
            return LoginReply(new: new, cursor: cursor, cookie: SessionCookie(new, configuration))
        } catch {
            let problem = Problem(error)
            guard problem.kind == .unavailable else { throw error }
            // The older session has ended.
            throw Problem.unavailable(problem.detail, mayHaveRun: true)
        }
    }
}

/// Admits a login whose names are valid, which is within the limits, and whose credential the application accepts.
struct LoginMiddleware<Parent: RequestContext>: RouterMiddleware {
    let gateway: Gateway

    func handle(
        _ request: Request, context: CallContext<Parent>,
        next: (Request, CallContext<Parent>) async throws -> Response
    ) async throws -> Response {
        let configuration = gateway.configuration
        let body = try await gateway.bodies.body(
            of: request, maxBytes: min(configuration.maxLoginBodyBytes, configuration.maxBodyBytes))
        let call = try LoginCall(try JSON(body: body, of: request))
        // A login whose names are not valid does not count.
        _ = try gateway.office.mailbox(call.user).reader(device: call.device)
        let address = gateway.address(of: request, context)
        try await gateway.limits.countLogin(of: call.user, from: address)
        let login = Login(user: call.user, device: call.device, credential: call.credential.bytes, address: address)
        try await authenticate(login)
        var context = context
        context.login = login
        return try await next(request, context)
    }

    private func authenticate(_ login: Login) async throws {
        let isAuthentic: Bool
        do { isAuthentic = try await gateway.authenticator.authenticate(login) } catch {
            gateway.logger.error("the authenticator failed", metadata: ["error": "\(error)"])
            throw Problem.unavailable("the login cannot be checked at present", mayHaveRun: false)
        }
        guard isAuthentic else {
            throw Problem.unauthorized(
                .badCredential, "the credential does not prove that this is the user",
                time: try await gateway.sessions.time())
        }
    }
}
