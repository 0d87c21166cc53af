import Crypto
import Foundation
import JWTKit
import RedisDCTesting
import Testing

@testable import Gateway

/// Logins at the stand-alone program with JSON Web Tokens, each kind of key once.
@Suite("Tokens", .timeLimit(.minutes(10)))
struct TokenTests {
    private struct Claims: JWTPayload {
        var sub: SubjectClaim
        var iss: String?
        /// An array is encoded as one text if it has one element.
        var aud: [String]?
        var exp: ExpirationClaim?
        var nbf: NotBeforeClaim?

        init(
            sub: String = "alice", iss: String? = "https://issuer.example", aud: [String]? = ["chat"],
            expires: Double? = 600, begins: Double? = nil
        ) {
            self.sub = SubjectClaim(value: sub)
            (self.iss, self.aud) = (iss, aud)
            exp = expires.map { ExpirationClaim(value: Date(timeIntervalSinceNow: $0)) }
            nbf = begins.map { NotBeforeClaim(value: Date(timeIntervalSinceNow: $0)) }
        }

        func verify(using algorithm: some JWTAlgorithm) async throws {}

        enum CodingKeys: CodingKey { case sub, iss, aud, exp, nbf }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(sub, forKey: .sub)
            try container.encodeIfPresent(iss, forKey: .iss)
            if let aud, aud.count == 1 {
                try container.encode(aud[0], forKey: .aud)
            } else {
                try container.encodeIfPresent(aud, forKey: .aud)
            }
            try container.encodeIfPresent(exp, forKey: .exp)
            try container.encodeIfPresent(nbf, forKey: .nbf)
        }
    }

    private static let secret = "a secret of at least 32 characters"

    /// Keys that sign, and the gateway's settings.
    private struct Keys {
        /// The right key.
        var right = JWTKeyCollection()
        /// Another one of the same kind.
        var wrong = JWTKeyCollection()
        /// The gateway's key as a file has it; `nil` for a shared secret.
        var publicKey: String?
    }

    private func keys(_ algorithm: String) async throws -> Keys {
        var keys = Keys()
        switch algorithm {
        case "HS256":
            await keys.right.add(hmac: HMACKey(from: Self.secret), digestAlgorithm: .sha256)
            let other = HMACKey(from: "another secret of at least 32 characters")
            await keys.wrong.add(hmac: other, digestAlgorithm: .sha256)
        case "ES256":
            let key = ES256PrivateKey()
            await keys.right.add(ecdsa: key)
            await keys.wrong.add(ecdsa: ES256PrivateKey())
            keys.publicKey = key.publicKey.pemRepresentation
        default:
            let key = try Insecure.RSA.PrivateKey(pem: try Self.rsaKey())
            await keys.right.add(rsa: key, digestAlgorithm: .sha256)
            await keys.wrong.add(rsa: try Insecure.RSA.PrivateKey(pem: try Self.rsaKey()), digestAlgorithm: .sha256)
            keys.publicKey = key.publicKey.pemRepresentation
        }
        return keys
    }

    /// Creates an RSA key, in PEM.
    private static func rsaKey() throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let pem = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return pem
    }

    @Test(
        "a token needs the right key, issuer, audience, user and time, and an expiry",
        arguments: ["HS256", "ES256", "RS256"])
    func tokens(algorithm: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let keys = try await keys(algorithm)
        try await withLocalRedis { server in
            var arguments = ["--redis-url", server.url, "--port", "0", "--operations-port", "0"]
            arguments += ["--jwt-issuer", "https://issuer.example", "--jwt-audience", "chat"]
            var environment: [String: String] = [:]
            if let pem = keys.publicKey {
                let file = folder.appendingPathComponent("key.pem")
                try Data(pem.utf8).write(to: file)
                arguments += ["--jwt-public-key", file.path]
            } else {
                environment["JWT_SECRET"] = Self.secret
            }
            let node = try GatewayProcess(arguments, environment: environment)
            let url = try await node.url()
            func status(_ token: String, _ user: String = "alice") async throws -> Int {
                let reply = try await TestClient.login(url, user, "phone", credential: .string(token))
                #expect(reply.status == 201 || reply.problem == "bad-credential")
                try await server.removeLimits()
                return reply.status
            }
            let good = try await keys.right.sign(Claims())
            #expect(good.split(separator: ".").first.flatMap { Self.header($0) }?.contains(algorithm) == true)
            #expect(try await status(good) == 201)
            #expect(try await status(keys.right.sign(Claims(begins: -60))) == 201)
            #expect(try await status(good, "bob") == 401)
            // Two spellings of the same characters are equal to ==, and are the names of two mailboxes.
            let (composed, decomposed) = ("b\u{F6}b", "bo\u{308}b")
            #expect(try await status(keys.right.sign(Claims(sub: decomposed)), composed) == 401)
            #expect(try await status(keys.right.sign(Claims(sub: composed)), composed) == 201)
            #expect(try await status(keys.wrong.sign(Claims())) == 401)
            #expect(try await status(keys.right.sign(Claims(expires: -60))) == 401)
            #expect(try await status(keys.right.sign(Claims(expires: nil))) == 401)
            #expect(try await status(keys.right.sign(Claims(begins: 300))) == 401)
            // A token of the same key for another service, or of another issuer.
            for issuer in [nil, "", "https://issuer.example/", "https://other.example"] {
                #expect(try await status(keys.right.sign(Claims(iss: issuer))) == 401, "\(issuer ?? "no issuer")")
            }
            for audience in [nil, [], ["shop"], ["shop", "mail"], [""], ["chat\u{301}"], ["Chat"]] {
                #expect(try await status(keys.right.sign(Claims(aud: audience))) == 401, "\(audience ?? ["none"])")
            }
            #expect(try await status(keys.right.sign(Claims(aud: ["shop", "chat"]))) == 201)
            // A changed payload.
            let claims = #""iss":"https://issuer.example","aud":"chat","exp":9999999999"#
            var parts = good.split(separator: ".").map(String.init)
            parts[1] = Self.base64(#"{"sub":"bob",\#(claims)}"#)
            #expect(try await status(parts.joined(separator: "."), "bob") == 401)
            // No signature.
            for name in ["none", "None", "NONE"] {
                let head = Self.base64(#"{"alg":"\#(name)","typ":"JWT"}"#)
                let payload = Self.base64(#"{"sub":"alice",\#(claims)}"#)
                #expect(try await status("\(head).\(payload).") == 401)
                #expect(try await status("\(head).\(payload).\(parts[2])") == 401)
            }
            // The public key, which everybody may know, as a shared secret.
            if let pem = keys.publicKey {
                for key in [pem, pem + "\n", pem.trimmingCharacters(in: .whitespacesAndNewlines)] {
                    let text =
                        Self.base64(#"{"alg":"HS256","typ":"JWT"}"#) + "."
                        + Self.base64(#"{"sub":"alice",\#(claims)}"#)
                    let code = HMAC<SHA256>.authenticationCode(
                        for: Data(text.utf8), using: SymmetricKey(data: Data(key.utf8)))
                    #expect(try await status("\(text).\(Self.base64(Data(code)))") == 401)
                }
            }
            #expect(!node.output.contains(Self.secret))
        }
    }

    private static func base64(_ text: String) -> String { base64(Data(text.utf8)) }

    private static func base64(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    private static func header(_ text: Substring) -> String? {
        let padded = String(text).padding(toLength: (text.count + 3) / 4 * 4, withPad: "=", startingAt: 0)
        return Data(base64Encoded: padded).map { String(decoding: $0, as: UTF8.self) }
    }
}
