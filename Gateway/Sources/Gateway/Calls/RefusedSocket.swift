// GET /v1/socket: which requests become WebSockets, and the reply to others.
import HTTPTypes
import Hummingbird
import NIOHTTP1

extension Gateway {
    /// The only subprotocol.
    static let subprotocol = "ql.v1"

    /// Whether a request for an upgrade is accepted. Any other is answered by ``refusedSocket(_:context:)``.
    func acceptsSocket(_ head: HTTPRequestHead) -> Bool {
        guard head.method == .GET, head.uri.prefix(while: { $0 != "?" }) == "/v1/socket",
            head.headers[canonicalForm: "Sec-WebSocket-Protocol"].contains(where: { $0 == Self.subprotocol }),
            head.headers[canonicalForm: "Upgrade"].contains(where: { $0.lowercased() == "websocket" }),
            head.headers["Sec-WebSocket-Version"] == ["13"], head.headers["Sec-WebSocket-Key"].count == 1
        else { return false }
        let origins = head.headers["Origin"]
        return origins.count <= 1 && origins.allSatisfy(self.origins.allowed.contains)
    }

    /// Answers a request that is not upgraded.
    func refusedSocket(_ request: Request, context: CallContext<some RequestContext>) async throws -> Response {
        var problem = Problem(.upgrade, "this call is a WebSocket: upgrade it as a connection's first request")
        if request.headers[.secWebSocketKey] != nil {
            let protocols = request.headers[.secWebSocketProtocol]?.split(separator: ",").map(\.trimmed) ?? []
            if !protocols.contains(Self.subprotocol) {
                problem = Problem(.malformed, "the upgrade needs the subprotocol \(Self.subprotocol)")
            }
        }
        problem.headers[.upgrade] = "websocket"
        // Bytes after a refused upgrade may be frames.
        problem.headers[.connection] = "close"
        throw problem
    }
}
