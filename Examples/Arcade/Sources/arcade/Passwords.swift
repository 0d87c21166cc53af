import CryptoExtras
import Foundation

/// Hashes passwords by scrypt: slow, and with a salt, because passwords are short.
struct Passwords: Sendable {
    /// Derives 32 bytes from a password and a salt.
    var derive: @Sendable (_ password: String, _ salt: Data) throws -> Data = Self.scrypt

    /// Returns a text to store for a new password.
    func hash(of password: String) throws -> String {
        let salt = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        return "\(salt.base64EncodedString()):\(try derive(password, salt).base64EncodedString())"
    }

    /// Returns whether a password is that of which a hash is stored; `nil` for an account without a password, or none.
    ///
    /// The time depends neither on whether there is a hash nor on where the bytes differ: it does not reveal which names
    /// have a password.
    func isRight(_ password: String, for stored: String?) throws -> Bool {
        let parts = (stored ?? "").split(separator: ":", omittingEmptySubsequences: false)
            .compactMap { Data(base64Encoded: String($0)) }
        let isHash = parts.count == 2 && parts[1].count == 32
        let (salt, key) = isHash ? (parts[0], parts[1]) : (Data(count: 16), Data(count: 32))
        let difference = zip(try derive(password, salt), key).reduce(0) { $0 | ($1.0 ^ $1.1) }
        return isHash && difference == 0
    }

    private static func scrypt(_ password: String, _ salt: Data) throws -> Data {
        let key = try KDF.Scrypt.deriveKey(
            from: Data(password.utf8), salt: salt, outputByteCount: 32, rounds: 1 << 14, blockSize: 8, parallelism: 1)
        return key.withUnsafeBytes { Data($0) }
    }
}
