import Crypto
import Foundation
import Gateway
import Hiredis
import Hummingbird
import Logging
import QueueListen
import RedisDC

/// Players and their names.
///
/// The first browser that uses a name keeps it, by a secret that only it knows; the name is free again after a week
/// without a login. A player who registers keeps the name for good, and logs in from other devices by a password.
struct Accounts: Authenticator {
    private static let lifetime = 7 * 86400
    /// Times for which a code can be used, in seconds.
    private static let codeLifetime = 3600

    private let redis: any Redis
    private let namespace: String
    private let mail: any MailSender
    private let coordinator: Coordinator
    private let office: PostOffice
    private let logger: Logger
    private let passwords: Passwords
    /// The data that other services store of guests, removed before another player uses a name.
    let guests = GuestData()

    init(
        redis: any Redis, namespace: String, coordinator: Coordinator, office: PostOffice, mail: any MailSender,
        logger: Logger, passwords: Passwords = Passwords()
    ) {
        (self.redis, self.namespace, self.mail, self.office) = (redis, namespace, mail, office)
        (self.coordinator, self.logger, self.passwords) = (coordinator, logger, passwords)
    }

    // MARK: Login

    /// Replies 1 if the name is this browser's, 0 if it is another player's, -1 if there is no account and none is
    /// created. Lua/accounts.lua describes the arguments and replies of all scripts.
    private static let claimScript = RedisScript(embedded: PackageResources.account_claim_lua)

    private struct Password: Codable { var password: String }

    /// Returns whether the credential is the secret or the password of the name. A wrong password takes the same time for
    /// every name, whether it is registered or not.
    func authenticate(_ login: Login) async throws -> Bool {
        guard Self.isName(login.user) else { return false }
        if let secret = login.credentialText {
            guard secret.utf8.count >= 22 else { return false }  // 128 bits in base64
            let hash = Self.hash(secret)
            if let isOwn = try await claim(login.user, hash, creating: false) { return isOwn }
            // The name may be that of a guest whose account has expired. The lock protects the data of a player who has
            // claimed the name since.
            return try await withLock(on: login.user) {
                if let isOwn = try await claim(login.user, hash, creating: false) { return isOwn }
                try await guests.remove(login.user)
                return try await claim(login.user, hash, creating: true) ?? false
            }
        }
        guard let given = try? JSONDecoder().decode(Password.self, from: Data(login.credential)),
            given.password.utf8.count <= Self.maxPasswordBytes,
            try passwords.isRight(given.password, for: try await field("password", of: login.user))
        else { return false }
        _ = try await redis.send(RedisCommand("HINCRBY", .string(key(login.user)), "logins", 1))
        return true
    }

    /// Runs the body while no other call takes a name, keeps it or gives it up.
    private func withLock<Result: Sendable>(on name: String, _ body: () async throws -> Result) async throws -> Result {
        try await coordinator.mutex("account \(name)").withLock(timeout: .seconds(10)) { _ in try await body() }
    }

    /// Runs the body with the lock on the caller's name, if the name still is the caller's: another player may have claimed
    /// it since the call was verified. A claim ends all former sessions.
    private func withLock<Result: Sendable>(
        on caller: Caller, _ gateway: Gateway, _ body: () async throws -> Result
    ) async throws -> Result {
        try await withLock(on: caller.user) {
            try await gateway.check(caller)
            return try await body()
        }
    }

    /// Logs in by the hash of a browser's secret.
    ///
    /// - Returns: whether the name is this browser's; `nil` if there is no account and none is created.
    private func claim(_ name: String, _ hash: String, creating: Bool) async throws -> Bool? {
        let reply = try await redis.script(
            Self.claimScript, keys: [key(name)],
            arguments: [.string(hash), .integer(Self.lifetime), .integer(creating ? 1 : 0)])
        return reply.integer == -1 ? nil : reply.integer == 1
    }

    // MARK: Calls

    private struct Register: Codable { var password: String, email: String }
    private struct Verify: Codable { var code: String }
    private struct Nothing: Codable {}
    private struct Account: Codable { var isRegistered: Bool, isVerified: Bool, logins: Int }
    private struct Forgot: Codable { var name: String }
    private struct Reset: Codable { var name: String, code: String, password: String }

    func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>, _ limit: AddressLimit) {
        gateway.addCall("/account/state", to: router) { (_: Nothing, caller) in try await account(of: caller.user) }
        gateway.addCall("/account/register", to: router) { (register: Register, caller) in
            try await withLock(on: caller, gateway) { try await self.register(caller.user, register) }
            return try await account(of: caller.user)
        }
        gateway.addCall("/account/verify", to: router) { (verify: Verify, caller) in
            guard try await mayTry("verify \(caller.user)", 20),
                try await redeem(verify.code, "verify", of: caller.user, ["verified", "1"]) != .wrong
            else {
                throw CallRefusal("code", "the code is wrong or has expired")
            }
            return try await account(of: caller.user)
        }
        // A player who has forgotten the password has no session. Neither the reply nor its time says anything about
        // the account.
        router.post("/account/forgot") { request, context in
            let forgot = try await gateway.openContent(Forgot.self, of: request, context)
            try await limit.check("password", perMinute: 20, request, context)
            guard Self.isName(forgot.name) else { return HTTPResponse.Status.badRequest }
            // Strangers can use up the player's attempts, but each one is a mail: the code in the last mail is valid.
            if try await mayTry("forgot \(forgot.name)", 10) { Task { await remind(forgot.name) } }
            return HTTPResponse.Status.noContent
        }
        router.post("/account/reset") { request, context in
            let reset = try await gateway.openContent(Reset.self, of: request, context)
            try await limit.check("password", perMinute: 20, request, context)
            guard Self.isName(reset.name), Self.isPassword(reset.password) else {
                return HTTPResponse.Status.badRequest
            }
            // The hash of a password takes long: only for the right code. The attempts of all strangers together are not
            // limited, because nobody guesses a code, and a limit would refuse the player's right code too.
            guard try await isCode(reset.code, "reset", of: reset.name) else { return .forbidden }
            let hash = try passwords.hash(of: reset.password)
            switch try await redeem(reset.code, "reset", of: reset.name, ["password", hash], deleting: "secret") {
            case .wrong: return .forbidden
            case .used:
                guard try passwords.isRight(reset.password, for: try await field("password", of: reset.name)) else {
                    return .forbidden
                }
            case .right: break
            }
            // Every device must log in with the new password, also a browser that kept the name by its secret. If the node
            // dies before, or the reply is lost, the same call can be repeated.
            try await endSessions(of: reset.name, gateway)
            return .noContent
        }
    }

    private func account(of name: String) async throws -> Account {
        let values =
            try await redis.send(RedisCommand("HMGET", .string(key(name)), "password", "verified", "logins"))
            .array ?? []
        return Account(
            isRegistered: values.first?.string != nil, isVerified: values.dropFirst().first?.string == "1",
            logins: values.last?.string.flatMap { Int($0) } ?? 0)
    }

    /// Replies 1 if the account was not registered yet.
    private static let keep = RedisScript(embedded: PackageResources.account_register_lua)

    /// Replies 0 if the account's address is verified: it stays.
    private static let correct = RedisScript(embedded: PackageResources.account_correct_email_lua)

    private func register(_ name: String, _ register: Register) async throws {
        guard name.utf8.count >= 4 else {
            throw CallRefusal("name", "a name that is registered has 4 to 15 letters or digits")
        }
        guard Self.isPassword(register.password) else {
            throw CallRefusal(
                "password", "a password has \(Self.minPasswordBytes) to \(Self.maxPasswordBytes) characters")
        }
        guard register.email.utf8.count <= 254, register.email.split(separator: "@").count == 2,
            !register.email.contains(where: { $0.isWhitespace || $0.isNewline })
        else { throw CallRefusal("email", "this is not a valid e-mail address") }
        // Nobody's mailbox is filled, neither from one name nor from many.
        guard try await mayTry("register \(name)", 10), try await mayTry("mail \(Self.hash(register.email))", 10) else {
            throw CallRefusal("tries", "too many attempts: try again in an hour")
        }
        let reply = try await redis.script(
            Self.keep, keys: [key(name)],
            arguments: [.string(try passwords.hash(of: register.password)), .string(register.email)])
        if reply.integer == 0 {
            // The same call again, after a lost reply, is no error. With another address it corrects the first one, as long
            // as that is not verified.
            guard try passwords.isRight(register.password, for: try await field("password", of: name)) else {
                throw CallRefusal("registered", "this name is registered already")
            }
            let isCorrected = try await redis.script(
                Self.correct, keys: [key(name), codeKey("verify", name)], arguments: [.string(register.email)])
            if isCorrected.integer == 0 { return }
        }
        try await sendCode("verify", of: name, to: register.email, "Your code to verify this address")
    }

    // MARK: Codes

    private func remind(_ name: String) async {
        do {
            guard try await field("verified", of: name) == "1",
                let email = try await field("email", of: name)
            else { return }
            try await sendCode("reset", of: name, to: email, "Your code for a new password")
        } catch { logger.warning("no code could be sent", metadata: ["error": "\(error)"]) }
    }

    /// Whether another attempt is allowed within the hour. Each purpose has attempts of its own.
    private func mayTry(_ purpose: String, _ limit: Int) async throws -> Bool {
        try await coordinator.rateLimiter("account \(purpose)", rate: limit, per: .seconds(3600), burst: limit)
            .tryAcquire().isAllowed
    }

    private func sendCode(_ purpose: String, of name: String, to address: String, _ text: String) async throws {
        // 60 random bits: however many strangers try, within the hour none finds it.
        let code = String((0..<12).map { _ in "ABCDEFGHJKLMNPQRSTUVWXYZ23456789".randomElement()! })
        _ = try await redis.send(
            RedisCommand(
                "SET", .string(codeKey(purpose, name)), .string(Self.hash(code)), "EX", .integer(Self.codeLifetime)))
        try await mail.send("\(text), \(name): \(code)", to: address)
    }

    /// Replies 1 if it has set the field, 2 if it had done so before, else 0.
    private static let redeemScript = RedisScript(embedded: PackageResources.account_redeem_lua)

    private enum Redemption: Int { case wrong, right, used }

    /// Changes an account if a code is right, which is then used up.
    private func redeem(
        _ code: String, _ purpose: String, of name: String, _ field: [String], deleting other: String? = nil
    ) async throws -> Redemption {
        let words = [Self.hash(code)] + field + (other.map { [$0] } ?? [])
        let reply = try await redis.script(
            Self.redeemScript, keys: [codeKey(purpose, name), key(name)], arguments: words.map { .string($0) })
        return reply.integer.flatMap { Redemption(rawValue: $0) } ?? .wrong
    }

    /// Whether a code is right, used or not.
    private func isCode(_ code: String, _ purpose: String, of name: String) async throws -> Bool {
        let stored = try await redis.send(RedisCommand("GET", .string(codeKey(purpose, name)))).string
        return stored == Self.hash(code) || stored == "used \(Self.hash(code))"
    }

    // MARK: Leaving

    /// Deletes the account, unless its name is registered.
    private static let leave = RedisScript(embedded: PackageResources.account_leave_lua)

    /// Ends the session of a player. A guest leaves nothing behind.
    ///
    /// - Throws: if the session has ended meanwhile, or Redis cannot be reached: then the call can be repeated.
    func leave(_ caller: Caller, _ gateway: Gateway) async throws {
        try await withLock(on: caller, gateway) {
            if try await !isRegistered(caller.user) {
                try await guests.remove(caller.user, keeping: caller.device)
                _ = try await redis.script(Self.leave, keys: [key(caller.user)], arguments: [])
            }
            // The session is last: until then the call can be repeated.
            try await gateway.logout(caller)
        }
    }

    /// Ends the sessions of all devices of a player, except for one device.
    func endSessions(of name: String, except device: String? = nil, _ gateway: Gateway) async throws {
        for known in try await office.mailbox(name).devices() where known.name != device {
            try await gateway.logout(Caller(user: name, device: known.name))
        }
    }

    // MARK: Names and keys

    /// Whether the name is in use.
    func exists(_ name: String) async throws -> Bool {
        try await redis.send(RedisCommand("EXISTS", .string(key(name)))).integer == 1
    }

    /// Whether a name is kept for good.
    func isRegistered(_ name: String) async throws -> Bool { try await field("password", of: name) != nil }

    /// 1 to 15 ASCII letters or digits, so that a name is the same wherever it is shown or stored. A
    /// registered name has at least 4.
    static func isName(_ name: String) -> Bool {
        (1...15).contains(name.utf8.count) && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
    }

    private static let minPasswordBytes = 8
    private static let maxPasswordBytes = 64

    /// Whether a new password is long enough.
    private static func isPassword(_ password: String) -> Bool {
        (minPasswordBytes...maxPasswordBytes).contains(password.utf8.count)
    }

    private static func hash(_ secret: String) -> String {
        SHA256.hash(data: Data(secret.utf8)).map { String(format: "%02x", $0) }.joined()
    }

    private func key(_ name: String) -> String { "{\(namespace):account:\(name)}" }
    private func codeKey(_ purpose: String, _ name: String) -> String { "{\(namespace):account:\(name)}:\(purpose)" }

    private func field(_ field: String, of name: String) async throws -> String? {
        try await redis.send(RedisCommand("HGET", .string(key(name)), .string(field))).string
    }
}
