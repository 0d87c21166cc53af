import CoordinationBase

/// The keys and the channel of one bucket, which have a hash tag of their own.
struct PresenceKeys: Sendable {
    /// In the order of the scripts' `KEYS`: state, index, due, log, and the channel of changes.
    let all: [String]

    init(namespace: String, bucket: String) {
        all = ["state", "index", "due", "log", "changes"].map { "gs:{\(namespace):\(bucket)}:presence:\($0)" }
    }

    var changes: String { all[4] }

    /// Checks that a name is 1 to 256 bytes of UTF-8 without control characters and braces.
    ///
    /// - Throws: `.invalidArgument`.
    static func validate(_ name: String, _ what: String, maxBytes: Int = 256) throws(GameServiceError) {
        if let fault = invalidReason(name, what, maxBytes: maxBytes) { throw GameServiceError(.invalidArgument, fault) }
    }
}
