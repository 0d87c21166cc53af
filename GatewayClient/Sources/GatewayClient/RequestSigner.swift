import Crypto

/// Signs the requests of a session: docs/http.md, "Signed requests".
struct RequestSigner: Sendable {
    /// The session's identifier.
    let session: String
    private let key: SymmetricKey

    /// - Parameter token: the session's token. Its characters are the key; it is not decoded.
    init(session: String, token: String) {
        self.session = session
        key = SymmetricKey(data: Array(token.utf8))
    }

    /// Returns the signature of a request, with the prefix `v1=`.
    ///
    /// - Parameters:
    ///   - target: the path and the query exactly as they are sent.
    ///   - time: in milliseconds since 1970, by the server's clock.
    func signature(method: String, target: String, time: Int, nonce: String, body: [UInt8]) -> String {
        let hash = Self.hexadecimal(SHA256.hash(data: body))
        let text = ["v1", method, target, session, "\(time)", nonce, hash].joined(separator: "\n")
        return "v1=" + Self.hexadecimal(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Returns random text of 22 characters, each of which is a letter, a digit, "-" or "_": more than
    /// 128 bits.
    static func randomText() -> String {
        let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var generator = SystemRandomNumberGenerator()
        return String(
            decoding: (0..<22).map { _ in characters[Int(generator.next(upperBound: UInt64(64)))] }, as: UTF8.self)
    }
}
