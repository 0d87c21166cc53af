// The rules for the names of services, and the form of their keys in Redis.
import CoordinationBase

/// The place of one leaderboard or matchmaker in Redis.
///
/// Each has a hash tag of its own, so that all of its keys are in one slot of a cluster, and several
/// are spread over the servers.
struct ServiceKeys: Sendable {
    private let prefix: String

    /// - Parameters:
    ///   - namespace: 1 to 512 bytes of UTF-8 without control characters, braces and colons.
    ///   - kind: `board` or `match`.
    ///   - name: the name of the leaderboard or matchmaker, 1 to 256 bytes of UTF-8 without control
    ///     characters and braces.
    /// - Throws: `.invalidArgument`.
    init(namespace: String, kind: String, name: String) throws(GameServiceError) {
        try Self.validate(namespace, "namespace", maxBytes: 512)
        guard !namespace.utf8.contains(UInt8(ascii: ":")) else {
            throw GameServiceError(.invalidArgument, "a namespace has no colon, this one is \"\(namespace)\"")
        }
        try Self.validate(name, "name", maxBytes: 256)
        prefix = "gs:{\(namespace):\(name)}:\(kind):"
    }

    /// The key with this last part.
    func key(_ suffix: String) -> String { prefix + suffix }

    /// Checks that a name is 1 to `maxBytes` bytes of UTF-8 without control characters and braces.
    ///
    /// - Throws: `.invalidArgument`.
    static func validate(_ name: String, _ what: String, maxBytes: Int) throws(GameServiceError) {
        if let fault = invalidReason(name, what, maxBytes: maxBytes) { throw GameServiceError(.invalidArgument, fault) }
    }
}
