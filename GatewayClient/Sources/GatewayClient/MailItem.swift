/// One delivery of a connection, whatever its transport.
enum MailItem: Equatable, Sendable {
    /// The gateway has replied, and the transport passes.
    case opened
    /// The delay with which to connect again.
    case retry(Duration)
    case message(GatewayMessage)
    case gap(GatewayGap)
    /// Moves the position past messages that were skipped.
    case position(String)
    case superseded
    /// The stream ends because the node restarts: connect again after this time.
    case bye(Duration)
}
