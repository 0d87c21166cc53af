import Crypto

/// The id of a session: two hexadecimal digits that select its bucket, and 22 random characters.
///
/// A bucket is a hash tag, so that the keys of one session are in one slot of a cluster, and the sessions of a namespace
/// are spread over all of them.
struct SessionID: Sendable, Hashable, CustomStringConvertible {
    let description: String

    /// Reads an id; `nil` if the text is something else.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 24, [UInt8](lowerCaseHexadecimal: text.prefix(2)) != nil,
            bytes.allSatisfy(\.isBase64URL)
        else { return nil }
        description = text
    }

    /// Creates a random id in the user's bucket.
    init(randomFor user: String) {
        description = Self.bucket(of: user) + [UInt8].random(16).base64URL
    }

    var bucket: String { String(description.prefix(2)) }

    static func bucket(of user: String) -> String { SHA256.hash(data: Array(user.utf8)).prefix(1).hexadecimal }
}
