import Crypto
import Foundation
import Gateway
import Hiredis

/// Decides who may log in: the first browser that uses a name keeps it, by a secret that only it knows.
///
/// The secret is random and long, so its hash need not be slow. A name that nobody has used for a week is free again.
struct Accounts: Authenticator {
    let redis: any Redis
    let namespace: String

    private static let minSecretBytes = 22  // 128 bits in base64
    private static let lifetime = 7 * 86400

    /// KEYS[1] the account. ARGV[1] the hash of the secret, ARGV[2] seconds. Replies 1 if the name has this hash.
    private static let claim = RedisScript(
        """
        local hash = redis.call('GET', KEYS[1])
        if hash and hash ~= ARGV[1] then return 0 end
        redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
        return 1
        """)

    func authenticate(_ login: Login) async throws -> Bool {
        guard let secret = login.credentialText, secret.utf8.count >= Self.minSecretBytes, Self.isName(login.user)
        else {
            return false
        }
        let hash = SHA256.hash(data: Data(secret.utf8)).map { String(format: "%02x", $0) }.joined()
        let reply = try await redis.script(
            Self.claim, keys: ["{\(namespace)}:account:\(login.user)"],
            arguments: [.string(hash), .integer(Self.lifetime)])
        return reply.integer == 1
    }

    /// 1 to 15 ASCII letters or digits, so that a name is the same wherever it is shown or stored.
    static func isName(_ name: String) -> Bool {
        (1...15).contains(name.utf8.count) && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
    }
}
