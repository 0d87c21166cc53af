import Crypto
import HTTPTypes
import Hummingbird

/// The signature of a request with the values that it covers: docs/http.md, "Signed requests".
struct Signature: Sendable {
    /// The time by which a request's time may differ from that of Redis, in milliseconds.
    static let window = 60_000

    var session: String
    /// In milliseconds since 1970.
    var time: Int
    /// The time as it was sent, which may have leading zeros.
    var timeText: String
    var nonce: String
    /// 32 bytes.
    var code: [UInt8]

    /// - Parameters:
    ///   - time: decimal digits.
    ///   - signature: `v1=` and 64 lower-case hexadecimal digits.
    /// - Returns: `nil` if a part does not have its form.
    init?(session: String, time: String, nonce: String, signature: String) {
        let prefix = "v1="
        guard SessionID(session) != nil, (1...15).contains(time.utf8.count),
            time.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let milliseconds = Int(time),
            (16...64).contains(nonce.utf8.count), nonce.utf8.allSatisfy(\.isBase64URL), signature.hasPrefix(prefix),
            let code = [UInt8](lowerCaseHexadecimal: signature.dropFirst(prefix.count)), code.count == 32
        else { return nil }
        self.session = session
        self.time = milliseconds
        timeText = time
        self.nonce = nonce
        self.code = code
    }

    /// Reads the headers of a signed request; `nil` if one is missing or does not have its form.
    init?(_ headers: HTTPFields) {
        guard let session = headers.only(.session), let time = headers.only(.time), let nonce = headers.only(.nonce),
            let signature = headers.only(.signature)
        else { return nil }
        self.init(session: session, time: time, nonce: nonce, signature: signature)
    }

    /// Returns whether the signature is that of this request. Takes the same time for each wrong
    /// signature.
    ///
    /// - Parameters:
    ///   - target: the path and the query as they were sent.
    ///   - token: the session's.
    func isValid(method: String, target: String, body: [UInt8], token: String) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(
            code, authenticating: Array(text(method: method, target: target, body: body).utf8),
            using: SymmetricKey(data: Array(token.utf8)))
    }

    /// The text that is signed.
    func text(method: String, target: String, body: [UInt8]) -> String {
        ["v1", method, target, session, timeText, nonce, SHA256.hash(data: body).hexadecimal].joined(separator: "\n")
    }
}

extension HTTPField.Name {
    static let session = HTTPField.Name("X-Session")!
    static let time = HTTPField.Name("X-Time")!
    static let nonce = HTTPField.Name("X-Nonce")!
    static let signature = HTTPField.Name("X-Signature")!
}

extension HTTPFields {
    /// The value of a field that occurs exactly once.
    func only(_ name: HTTPField.Name) -> String? {
        let values = self[values: name]
        return values.count == 1 ? values[0] : nil
    }
}
