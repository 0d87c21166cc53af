@testable import Hiredis

extension RedisClient {
    /// The connections of a client of one server.
    var onlyNode: Node {
        guard case .one(let node, _) = servers else { preconditionFailure("the client is one of a cluster") }
        return node
    }
}
