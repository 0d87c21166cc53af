// The calls that begin and end sessions.
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import QueueListen

extension Gateway {
    /// POST /v1/sessions
    func login(_ request: Request, _ address: String?) async throws -> Response {
        try checkOrigin(request.headers[.origin])
        let maxBytes = min(configuration.maxLoginBodyBytes, configuration.maxBodyBytes)
        let json = try Self.object(try await body(of: request, maxBytes: maxBytes), of: request)
        guard let user = json["user"]?.string, let device = json["device"]?.string, let credential = json["credential"]
        else { throw Problem(.malformed, "a login has the fields user, device and credential") }
        let reader: DeviceReader
        do throws(QueueListenError) {
            reader = try office.mailbox(user).reader(device: device)
        } catch { throw Problem(error) }
        try await limitLogins(of: user, from: address)
        let login = Login(user: user, device: device, credential: credential.bytes, address: address)
        let isAuthentic: Bool
        do { isAuthentic = try await authenticator.authenticate(login) } catch {
            logger.error("the authenticator failed", metadata: ["error": "\(error)"])
            throw Problem.unavailable("the login cannot be checked at present", mayHaveRun: false)
        }
        guard isAuthentic else {
            throw Problem.unauthorized(
                .badCredential, "the credential does not prove that this is the user", time: try await sessions.time())
        }
        let new = try await sessions.login(user: user, device: device, lifetime: configuration.sessionLifetime)
        let cursor: Cursor
        do throws(Problem) { cursor = try await makeKnown(reader) } catch {
            // The older session has ended.
            throw error.kind == .unavailable ? .unavailable(error.detail, mayHaveRun: true) : error
        }
        let reply: JSON = [
            "session": .string(new.session.id.description), "token": .string(new.token),
            "expires": JSON(new.session.expires), "time": JSON(new.session.verifiedAt),
            "cursor": .string(cursor.description),
        ]
        var response = Response(.created, reply)
        let age = configuration.sessionLifetime.components.seconds
        response.headers[.setCookie] = cookie("\(new.session.id).\(new.cookie)", maxAge: Int(age))
        return response
    }

    /// Limits the logins from an address, and those of a user from an address: who is elsewhere cannot use up the user's
    /// own attempts.
    private func limitLogins(of user: String, from address: String?) async throws(Problem) {
        let subscriber = address.map { Self.subscriber(of: $0) }
        if let subscriber {
            let rate = configuration.loginsFromAddressPerMinute
            try await limit("gateway:address:\(Self.hash(subscriber))", rate, per: .seconds(60), burst: rate)
        }
        let rate = configuration.loginsOfUserPerMinute
        // The length separates the address from the user.
        let pair = "\(subscriber?.utf8.count ?? 0):\(subscriber ?? ""):\(user)"
        try await limit("gateway:login:\(Self.hash(pair))", rate, per: .seconds(60), burst: rate)
    }

    /// Returns the part of an address that its owner cannot choose, by which calls without a session are limited: all of
    /// an IPv4 address, the first 64 bits of an IPv6 address.
    ///
    /// - Parameter address: as text. What is no address is returned unchanged.
    public static func subscriber(of address: String) -> String {
        var parsed = in6_addr()
        // An address of a link has a zone.
        guard inet_pton(AF_INET6, String(address.prefix { $0 != "%" }), &parsed) == 1 else { return address }
        let bytes = withUnsafeBytes(of: parsed) { Array($0) }
        // An IPv4 address in the form ::ffff:192.0.2.1.
        if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
            return bytes.suffix(4).map(String.init).joined(separator: ".")
        }
        return bytes.prefix(8).hexadecimal + "/64"
    }

    /// Names of limits have no braces and a maximum length; a hash fits any name.
    private static func hash(_ text: String) -> String { SHA256.hash(data: Array(text.utf8)).hexadecimal }

    /// Makes the device known to the mailbox, and ends none of its readers: those of older sessions end with these, and one of
    /// a newer login must not end, if this login was held up.
    ///
    /// - Returns: the position up to which the device has acknowledged.
    func makeKnown(_ reader: DeviceReader) async throws(Problem) -> Cursor {
        // Another login may take the place that has become free.
        for _ in 1...10 {
            do throws(QueueListenError) { return try await reader.mailbox.register(device: reader.device) } catch {
                guard error.code == .conflict else { throw Problem(error) }
            }
            try await forgetOldestDevice(of: reader.mailbox)
        }
        throw .unavailable("too many devices of the user log in at the same time", mayHaveRun: true)
    }

    /// Ends the session of the device that was not seen for the longest time, and forgets the device.
    private func forgetOldestDevice(of mailbox: Mailbox) async throws(Problem) {
        let oldest: MailboxDevice?
        do throws(QueueListenError) { oldest = try await mailbox.devices().min { $0.lastSeen < $1.lastSeen } } catch {
            throw Problem(error)
        }
        guard let oldest else { return }
        try await sessions.logout(user: mailbox.name, device: oldest.name)
        try await forget(oldest.name, of: mailbox)
    }

    /// Forgets a device whose session has ended, unless it logs in meanwhile.
    ///
    /// No message is lost to a login at the same moment: it registers the device after its session has begun. Either that
    /// session is found here, or the registration comes after the device was read here, which therefore stays.
    private func forget(_ device: String, of mailbox: Mailbox) async throws(Problem) {
        for _ in 1...10 {
            let known: MailboxDevice?
            do throws(QueueListenError) {
                // By bytes, as the mailbox distinguishes them.
                known = try await mailbox.devices().first { $0.name.utf8.elementsEqual(device.utf8) }
            } catch { throw Problem(error) }
            guard let known, try await !sessions.exists(user: mailbox.name, device: device) else { return }
            do throws(QueueListenError) { if try await mailbox.forget(known) { return } } catch { throw Problem(error) }
            // It was seen meanwhile, by a last read of the session that has ended for example.
        }
        throw .unavailable("the device is in use", mayHaveRun: true)
    }

    /// Ends the session of a device, if it has one, and forgets the device: after a ban, for example, or when a user leaves.
    ///
    /// The nodes end its streams and polls.
    ///
    /// - Throws: the problem with which the gateway would answer a call. The logout may have taken effect; repeat it.
    ///   `QueueListenError` if the user's name is none.
    public func logout(_ caller: Caller) async throws {
        try await sessions.logout(user: caller.user, device: caller.device)
        try await forget(caller.device, of: office.mailbox(caller.user))
    }

    /// Checks that the session of a caller has not ended since the call was verified: after the wait for a lock, for example,
    /// when the user's name may be another user's.
    ///
    /// - Throws: the problem with which the gateway answers the call: `unknown-session`, `logged-in-elsewhere`, or
    ///   `unavailable` if Redis cannot be reached. A caller that the application has created is not checked.
    public func check(_ caller: Caller) async throws {
        if let session = caller.session { try await sessions.check(session) }
    }

    /// DELETE /v1/sessions
    func logout(_ request: Request, _ address: String?) async throws -> Response {
        let (session, _) = try await verified(request, isLogout: true)
        // The nodes end the streams of the session when they receive its end (`run()`). To begin a poll here, which would end
        // them too, could end those of a login that came meanwhile.
        try await sessions.logout(session)
        try await forget(session.device, of: office.mailbox(session.user))
        var response = Response.noContent
        response.headers[.setCookie] = cookie("", maxAge: 0)
        return response
    }

    // MARK: The cookie of event streams

    var cookieName: String { configuration.isSecure ? "__Host-redisdc-events" : "redisdc-events" }

    private func cookie(_ value: String, maxAge: Int) -> String {
        "\(cookieName)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(maxAge)"
            + (configuration.isSecure ? "; Secure" : "")
    }
}
