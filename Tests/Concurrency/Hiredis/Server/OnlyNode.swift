@testable import Hiredis

extension RedisClient {
    /// The connections of a client of one server.
    var onlyNode: Node {
        guard let node = servers as? Node else { preconditionFailure("the client is one of a cluster") }
        return node
    }
}
