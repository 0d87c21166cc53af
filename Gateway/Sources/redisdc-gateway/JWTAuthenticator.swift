import Foundation
import Gateway
import JWTKit

/// Accepts a login whose credential is a JSON Web Token of one issuer for this gateway, with the user as `sub` and an
/// expiry.
struct JWTAuthenticator: Authenticator {
    private struct Claims: JWTPayload {
        var sub: SubjectClaim
        /// Required: an issuer's key may be that of several issuers.
        var iss: IssuerClaim
        /// Required: a token for another service of the same issuer must not log in here.
        var aud: Audience
        /// Required: a token that is valid for ever cannot be taken back.
        var exp: ExpirationClaim
        var nbf: NotBeforeClaim?

        func verify(using algorithm: some JWTAlgorithm) async throws {
            try exp.verifyNotExpired()
            try nbf?.verifyNotBefore()
        }
    }

    /// The claim `aud`: a text or an array of texts. `AudienceClaim` of JWTKit ends the process when the array is empty.
    private struct Audience: Codable {
        var names: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            names = try (try? [container.decode(String.self)]) ?? container.decode([String].self)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(names)
        }
    }

    private let keys: JWTKeyCollection
    private let issuer: String
    private let audience: String

    /// - Throws: an error if the key cannot be read.
    init(_ tokens: Settings.Tokens) async throws {
        let keys = JWTKeyCollection()
        switch tokens.key {
        case .secret(let secret): await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        case .publicKey(let path):
            let pem = try String(contentsOfFile: path, encoding: .utf8)
            if let key = try? ES256PublicKey(pem: pem) {
                await keys.add(ecdsa: key)
            } else {
                await keys.add(rsa: try Insecure.RSA.PublicKey(pem: pem), digestAlgorithm: .sha256)
            }
        }
        self.keys = keys
        issuer = tokens.issuer
        audience = tokens.audience
    }

    func authenticate(_ login: Login) async throws -> Bool {
        guard let token = login.credentialText, let claims = try? await keys.verify(token, as: Claims.self) else {
            return false
        }
        return claims.iss.value.hasSameBytes(as: issuer)
            && claims.aud.names.contains { $0.hasSameBytes(as: audience) }
            && claims.sub.value.hasSameBytes(as: login.user)
    }
}

extension String {
    /// Compares bytes, as Redis compares names: == also holds for other spellings of the same characters.
    fileprivate func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}

/// Accepts every login: for experiments on a loopback address.
struct AnonymousAuthenticator: Authenticator {
    func authenticate(_ login: Login) async throws -> Bool { true }
}
