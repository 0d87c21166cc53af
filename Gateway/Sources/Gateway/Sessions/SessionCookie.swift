/// The cookie with which browsers open event streams, because these cannot be signed.
struct SessionCookie: Sendable {
    /// The value of the header Set-Cookie.
    let header: String

    /// The cookie of a session that has begun.
    init(_ new: NewSession, _ configuration: GatewayConfiguration) {
        let age = Int(configuration.sessionLifetime.components.seconds)
        self.init("\(new.session.id).\(new.cookie)", maxAge: age, configuration)
    }

    /// Removes the cookie.
    init(removedBy configuration: GatewayConfiguration) { self.init("", maxAge: 0, configuration) }

    private init(_ value: String, maxAge: Int, _ configuration: GatewayConfiguration) {
        header =
            "\(configuration.cookieName)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(maxAge)"
            + (configuration.isSecure ? "; Secure" : "")
    }
}

extension GatewayConfiguration {
    var cookieName: String { isSecure ? "__Host-redisdc-events" : "redisdc-events" }
}
