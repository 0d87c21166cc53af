// DELETE /v1/sessions: ends a session.
import HTTPTypes
import Hummingbird
import QueueListen

/// Removes the cookie of event streams.
struct LogoutReply: ResponseGenerator {
    var cookie: SessionCookie

    func response(from request: Request, context: some RequestContext) throws -> Response {
        var response = Response.noContent
        response.headers[.setCookie] = cookie.header
        return response
    }
}

extension Gateway {
    func logout(_ request: Request, context: SessionContext<some RequestContext>) async throws -> LogoutReply {
        // The nodes end the streams of the session when they receive its end (`run()`). To begin a poll here, which would end
        // them too, could end those of a login that came meanwhile.
        try await sessions.logout(context.session)
        try await forget(context.session.device, of: office.mailbox(context.session.user))
        return LogoutReply(cookie: SessionCookie(removedBy: configuration))
    }

    /// Ends the session of a device, if it has one, and forgets the device: after a ban, for example,
    /// or when a user leaves.
    ///
    /// The nodes end its streams and polls.
    ///
    /// - Throws: `RedisError`, `QueueListenError`, or the problem `unavailable` if the device keeps
    ///   reading. The logout may have taken effect; repeat it, unless the user's name is invalid.
    public func logout(_ caller: Caller) async throws {
        try await sessions.logout(user: caller.user, device: caller.device)
        try await forget(caller.device, of: office.mailbox(caller.user))
    }
}
