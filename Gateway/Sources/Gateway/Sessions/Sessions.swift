import Crypto
import Hiredis

/// A client's session, as it was verified.
struct Session: Sendable {
    var id: SessionID
    var user: String
    var device: String
    /// In milliseconds since 1970, by the clock of Redis.
    var expires: Int
    /// The time of the verification, by the same clock.
    var verifiedAt: Int
    /// The end of the session by this machine's clock: not later than `expires`.
    var end: ContinuousClock.Instant

    /// - Parameter askedAt: a time of this machine's clock before `verifiedAt` was read.
    init(id: SessionID, user: String, device: String, expires: Int, verifiedAt: Int, askedAt: ContinuousClock.Instant) {
        (self.id, self.user, self.device) = (id, user, device)
        (self.expires, self.verifiedAt) = (expires, verifiedAt)
        // Redis counts whole milliseconds, and `verifiedAt` is rounded down.
        end = askedAt + .milliseconds(expires - verifiedAt - 1)
    }
}

/// A session that has just begun, with its secrets.
struct NewSession: Sendable {
    var session: Session
    var token: String
    /// The secret part of the cookie.
    var cookie: String
}

/// The sessions of all nodes, which are in Redis.
struct Sessions: Sendable {
    let redis: any Redis
    let namespace: String

    private static let loginScript = RedisScript(embedded: PackageResources.session_login_lua)
    private static let loadScript = RedisScript(embedded: PackageResources.session_load_lua)
    private static let admitScript = RedisScript(embedded: PackageResources.session_admit_lua)
    private static let logoutScript = RedisScript(embedded: PackageResources.session_logout_lua)

    // MARK: Keys

    private func key(_ bucket: String, _ suffix: String) -> String { "gw:{\(namespace):\(bucket)}:\(suffix)" }
    private func key(_ id: SessionID) -> String { key(id.bucket, "session:\(id)") }
    /// The length separates the user from the device, which may contain colons.
    private func key(user: String, device: String) -> String {
        key(SessionID.bucket(of: user), "device:\(user.utf8.count):\(user):\(device)")
    }

    /// Each message is the id of a session that has ended before its time.
    var endedChannel: String { "gw:\(namespace):ended" }

    // MARK: Begin and end

    /// Begins a session. An older one of the same user and device ends.
    func login(user: String, device: String, lifetime: Duration) async throws -> NewSession {
        let id = SessionID(randomFor: user)
        let (token, cookie) = ([UInt8].random(32).base64URL, [UInt8].random(32).base64URL)
        let milliseconds = lifetime.components.seconds * 1000
        var older = ""
        while true {
            let askedAt = ContinuousClock.now
            let reply = try await run(
                Self.loginScript, [key(user: user, device: device), key(id), SessionID(older).map(key) ?? key(id)],
                [
                    .string(older), .string(id.description), .string(user), .string(device), .string(token),
                    .string(Self.hash(cookie)), .integer(Int(milliseconds)), .string(endedChannel),
                ], changesSessions: true)
            switch (reply.first?.string, reply.count) {
            case ("ok", 3):
                guard let now = reply[1].number, let expires = reply[2].number else { throw Self.unexpected }
                let session = Session(
                    id: id, user: user, device: device, expires: expires, verifiedAt: now, askedAt: askedAt)
                return NewSession(session: session, token: token, cookie: cookie)
            case ("again", 2):
                // A login of the same device at the same moment, or an older session.
                older = reply[1].string ?? ""
            default: throw Self.unexpected
            }
        }
    }

    /// The time for which a logout can be repeated: its reply may have been lost.
    private static let logoutTime = 10 * 60 * 1000

    /// Ends a session.
    func logout(_ session: Session) async throws(RedisError) {
        try await end(session.id, user: session.user, device: session.device)
    }

    /// Ends the session of a device, if it has one.
    func logout(user: String, device: String) async throws(RedisError) {
        guard let id = try await current(user: user, device: device) else { return }
        try await end(id, user: user, device: device)
    }

    /// Whether a device has a session.
    func exists(user: String, device: String) async throws(RedisError) -> Bool {
        try await current(user: user, device: device) != nil
    }

    private func current(user: String, device: String) async throws(RedisError) -> SessionID? {
        try await redis.send("GET", .string(key(user: user, device: device))).string.flatMap { SessionID($0) }
    }

    private func end(_ id: SessionID, user: String, device: String) async throws(RedisError) {
        _ = try await redis.script(
            Self.logoutScript, keys: [key(id), key(user: user, device: device)],
            arguments: [.string(id.description), .string(endedChannel), .integer(Self.logoutTime)])
    }

    // MARK: Verify

    /// A signed request whose signature was not verified: its session exists, and its time is current.
    struct Claim: Sendable {
        fileprivate let stored: Stored
        fileprivate let session: Session
        fileprivate let signature: Signature
        /// Whether the session may be one that a logout has ended a short time ago.
        fileprivate let isLogout: Bool

        /// Verifies the signature. Only the owner of the session's token gets beyond this.
        ///
        /// - Throws: `bad-signature`.
        func verified(method: String, target: String, body: [UInt8]) throws(Problem) -> Session {
            guard signature.isValid(method: method, target: target, body: body, token: stored.token) else {
                throw .unauthorized(.badSignature, "the signature is not that of this request", time: stored.now)
            }
            return session
        }
    }

    /// Checks what a signed request claims before its body is there.
    ///
    /// - Parameter isLogout: whether the session may be one that a logout has ended a short time ago.
    /// - Throws: 401 problems, `RedisError`.
    func claim(_ signature: Signature, isLogout: Bool = false) async throws -> Claim {
        guard let id = SessionID(signature.session) else {
            throw Problem.unauthorized(.unsigned, "the session has the wrong form", time: try await time())
        }
        let stored = try await load(id)
        let session = try stored.session(orEnded: isLogout)
        guard abs(stored.now - signature.time) <= Signature.window else { throw Self.stale(signature, now: stored.now) }
        return Claim(stored: stored, session: session, signature: signature, isLogout: isLogout)
    }

    private static func stale(_ signature: Signature, now: Int) -> Problem {
        .unauthorized(
            .stale,
            "the request's time differs from the server's by \(abs(now - signature.time)) ms, allowed are "
                + "\(Signature.window) ms", time: now)
    }

    /// Admits a signed request once, whose signature was verified and which is within the limit of its
    /// session: it stores the nonce.
    ///
    /// - Throws: 401 problems, `RedisError`.
    func admit(_ claim: Claim) async throws {
        let (id, signature) = (claim.session.id, claim.signature)
        let reply = try await run(
            Self.admitScript, [key(id), key(id.bucket, "nonce:\(id):\(signature.nonce)")],
            [.integer(signature.time), .integer(Signature.window), claim.isLogout ? "1" : ""])
        guard reply.count == 2, let now = reply[1].number else { throw Self.unexpected }
        switch reply[0].string {
        case "ok": return
        case "ended":
            _ = try await load(id).session(orEnded: claim.isLogout)
            throw Problem.unauthorized(.unknownSession, "the session has ended", time: now)
        case "stale": throw Self.stale(signature, now: now)
        case "used": throw Problem.unauthorized(.nonceUsed, "this nonce was used before", time: now)
        default: throw Self.unexpected
        }
    }

    /// Verifies the cookie of an event stream.
    ///
    /// - Parameter value: SESSION.SECRET
    func verify(cookie value: String) async throws -> Session {
        let parts = value.split(separator: ".", maxSplits: 1).map(String.init)
        guard parts.count == 2, let id = SessionID(parts[0]) else {
            throw Problem.unauthorized(.cookie, "the cookie has the wrong form", time: try await time())
        }
        let stored = try await load(id)
        let session = try stored.session()
        // Both are hashes: the comparison reveals nothing about the secret.
        guard Self.hash(parts[1]) == stored.cookie else {
            throw Problem.unauthorized(.cookie, "the cookie is not that of the session", time: stored.now)
        }
        return session
    }

    /// Checks that a session has not ended.
    ///
    /// - Throws: `unknown-session`, `logged-in-elsewhere`, `RedisError`.
    func check(_ id: SessionID) async throws { _ = try await load(id).session() }

    /// The time by the clock of Redis, in milliseconds since 1970.
    func time() async throws -> Int {
        try await load(SessionID(randomFor: "")).now
    }

    // MARK: Stored sessions

    fileprivate struct Stored: Sendable {
        var now: Int
        var id: SessionID
        var user: String
        var device: String
        var token: String
        var cookie: String
        var expires: Int
        var isReplaced: Bool
        /// Whether a logout has ended it.
        var isEnded: Bool
        var askedAt: ContinuousClock.Instant

        func session(orEnded: Bool = false) throws(Problem) -> Session {
            if isReplaced {
                throw .unauthorized(
                    .loggedInElsewhere, "a newer login of this device has replaced the session", time: now)
            }
            guard !token.isEmpty, now < expires, !isEnded || orEnded else {
                throw .unauthorized(.unknownSession, "the session has expired, or was ended", time: now)
            }
            return Session(
                id: id, user: user, device: device, expires: expires, verifiedAt: now, askedAt: askedAt)
        }
    }

    private func load(_ id: SessionID) async throws -> Stored {
        let askedAt = ContinuousClock.now
        let reply = try await run(Self.loadScript, [key(id)], [])
        guard reply.count == 8, let now = reply[0].number else { throw Self.unexpected }
        let texts = reply.map { $0.string ?? "" }
        return Stored(
            now: now, id: id, user: texts[1], device: texts[2], token: texts[3], cookie: texts[4],
            expires: Int(texts[5]) ?? 0, isReplaced: !texts[6].isEmpty, isEnded: !texts[7].isEmpty,
            askedAt: askedAt)
    }

    private func run(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], changesSessions: Bool = false
    ) async throws(RedisError) -> [RESPValue] {
        do throws(RedisError) {
            return try await redis.script(script, keys: keys, arguments: arguments).array ?? []
        } catch {
            var error = error
            // A nonce that may have been used is no effect of the call: it has not begun.
            error.mayHaveRun = error.mayHaveRun && changesSessions
            throw error
        }
    }

    private static var unexpected: Problem { Problem(.internal, "an unexpected reply of a session script") }

    private static func hash(_ secret: String) -> String { SHA256.hash(data: Array(secret.utf8)).hexadecimal }
}

extension RESPValue {
    /// The integer that a script returns, as a number or as text.
    fileprivate var number: Int? { integer ?? string.flatMap { Int($0) } }
}
