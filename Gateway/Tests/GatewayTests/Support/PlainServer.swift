import HummingbirdCore

@testable import Gateway

extension HTTPServerBuilder {
    /// The server of Hummingbird. It ends the process if it drops a connection while it stops, which this one does not.
    static var plain: HTTPServerBuilder { HTTPServerBuilder { AcceptedConnections(HTTP1Channel(responder: $0)) } }
}
