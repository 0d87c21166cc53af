/// The times of a ``GatewayClient``.
public struct GatewayClientConfiguration: Sendable {
    /// How the client reads a mailbox.
    public enum Transport: Sendable {
        /// Server-sent events; long polls while they do not pass, with a new attempt after
        /// ``GatewayClientConfiguration/eventsAgain``.
        case automatic
        /// Server-sent events only.
        case events
        /// Long polls only.
        case poll
    }

    /// How the client reads a mailbox.
    public var transport: Transport = .automatic
    /// The maximum time for the reply to one request.
    public var requestTimeout: Duration = .seconds(15)
    /// The maximum time for a call with its retries.
    public var callTimeout: Duration = .seconds(30)
    /// The maximum time until a stream has begun: its head and its first bytes.
    public var openTimeout: Duration = .seconds(10)
    /// A stream that has been silent for this time is broken. The gateway sends something every 15
    /// seconds.
    public var silenceTimeout: Duration = .seconds(40)
    /// The wait of a long poll, from 1 to 60 whole seconds.
    public var pollWait: Int = 25
    /// The first delay between two attempts, if the server has named none. Delays are random, between
    /// the half of it and the whole, and double with each round of failures.
    public var minDelay: Duration = .seconds(1)
    /// The maximum delay between two attempts, unless the server demands a longer one.
    public var maxDelay: Duration = .seconds(30)
    /// The first time after which long polls try server-sent events again. It doubles with each
    /// attempt that fails, up to 32 times.
    public var eventsAgain: Duration = .seconds(60)
    /// The least time between two automatic acknowledgements of a ``GatewayReceiver``.
    public var acknowledgePause: Duration = .milliseconds(250)

    /// Creates the default settings.
    public init() {}
}
