import Hummingbird

/// The context of a call, to which the middlewares add what they have verified about its client.
struct CallContext<Parent: RequestContext>: ChildRequestContext, Sendable {
    var coreContext: CoreRequestContextStorage
    /// The address of the connection, if the application's context knows it.
    let remoteAddress: String?
    /// Receives the end of the session, also one between its verification and the stream.
    var watch: SessionWatch.Entry?
    var verified: VerifiedRequest?
    var login: Login?

    init(context: Parent) {
        coreContext = context.coreContext
        remoteAddress = (context as? any RemoteAddressRequestContext)?.remoteAddress?.ipAddress
    }
}

/// A request whose session was verified.
struct VerifiedRequest: Sendable {
    var session: Session
    /// The body that the signature covers.
    var body: [UInt8] = []
    /// `nil` if the session was verified by its cookie.
    var claim: Sessions.Claim?
}

/// The context of a call that needs a session.
struct SessionContext<Parent: RequestContext>: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let session: Session
    let body: [UInt8]
    let watch: SessionWatch.Entry?

    init(context: CallContext<Parent>) throws {
        guard let verified = context.verified else { throw Problem(.internal, "the session was not verified") }
        coreContext = context.coreContext
        session = verified.session
        body = verified.body
        watch = context.watch
    }
}

/// The context of a login whose credential was accepted.
struct LoginContext<Parent: RequestContext>: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let login: Login

    init(context: CallContext<Parent>) throws {
        guard let login = context.login else { throw Problem(.internal, "the login was not authenticated") }
        coreContext = context.coreContext
        self.login = login
    }
}
