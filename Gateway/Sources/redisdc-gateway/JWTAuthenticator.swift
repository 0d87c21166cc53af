import Foundation
import Gateway
import JWTKit

/// Accepts a login whose credential is a JSON Web Token with the user as `sub` and an expiry.
struct JWTAuthenticator: Authenticator {
    private struct Claims: JWTPayload {
        var sub: SubjectClaim
        /// Required: a token that is valid for ever cannot be taken back.
        var exp: ExpirationClaim
        var nbf: NotBeforeClaim?

        func verify(using algorithm: some JWTAlgorithm) async throws {
            try exp.verifyNotExpired()
            try nbf?.verifyNotBefore()
        }
    }

    private let keys: JWTKeyCollection

    /// - Throws: an error if the key cannot be read.
    init(_ credentials: Settings.Credentials) async throws {
        let keys = JWTKeyCollection()
        switch credentials {
        case .secret(let secret): await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        case .publicKey(let path):
            let pem = try String(contentsOfFile: path, encoding: .utf8)
            if let key = try? ES256PublicKey(pem: pem) {
                await keys.add(ecdsa: key)
            } else {
                await keys.add(rsa: try Insecure.RSA.PublicKey(pem: pem), digestAlgorithm: .sha256)
            }
        case .anonymous: break
        }
        self.keys = keys
    }

    func authenticate(_ login: Login) async throws -> Bool {
        guard let token = login.credentialText, let claims = try? await keys.verify(token, as: Claims.self) else {
            return false
        }
        // By bytes, as Redis compares names: == also holds for other spellings of the same characters.
        return claims.sub.value.utf8.elementsEqual(login.user.utf8)
    }
}

/// Accepts every login: for experiments on a loopback address.
struct AnonymousAuthenticator: Authenticator {
    func authenticate(_ login: Login) async throws -> Bool { true }
}
