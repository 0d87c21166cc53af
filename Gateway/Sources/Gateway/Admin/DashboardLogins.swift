import Crypto
import NIOConcurrencyHelpers
import NIOCore

/// The operators that are logged in at this node, and the limit of attempts to log in.
///
/// In memory: the dashboard's address belongs to one node. A restart logs operators out.
final class DashboardLogins: Sendable {
    static let lifetime: TimeAmount = .hours(12)
    static let maxSessions = 32
    /// Attempts with a wrong key, for everybody together: one address serves few operators, and a limit for each client
    /// address would not bind somebody who has many.
    static let maxFailures = 5
    static let failurePeriod: TimeAmount = .minutes(1)
    static let confirmationLifetime: TimeAmount = .minutes(1)

    /// A session of an operator.
    struct Session: Sendable {
        fileprivate var name: String
        fileprivate var expires: NIODeadline
        /// Must accompany each change.
        var csrfToken: String
    }

    enum Attempt: Equatable, Sendable {
        case accepted(cookie: String)
        case wrongKey
        /// Too many wrong keys: not before this time.
        case limited(retryAfter: TimeAmount)
    }

    private struct State {
        var sessions: [String: Session] = [:]
        /// The times of failed attempts within the period.
        var failures: [NIODeadline] = []
        /// Actions that were announced and wait for their confirmation.
        var confirmations: [String: (session: String, action: DashboardAction, expires: NIODeadline)] = [:]
    }

    private let state = NIOLockedValueBox(State())
    /// A key of this process: what is compared or kept is a code, not the secret.
    private let codeKey = SymmetricKey(size: .bits256)
    private let expected: [UInt8]
    private let now: @Sendable () -> NIODeadline

    init(key: String, now: @escaping @Sendable () -> NIODeadline = { .now() }) {
        expected = Array(HMAC<SHA256>.authenticationCode(for: Array(key.utf8), using: codeKey))
        self.now = now
    }

    /// Compares a key in constant time, and opens a session if it is right.
    func logIn(key: String) -> Attempt {
        let now = now()
        let isRight = HMAC<SHA256>.isValidAuthenticationCode(
            expected, authenticating: Array(key.utf8), using: codeKey)
        // The check of the limit and the count of a failure are one step: attempts at the same time count too.
        let refusal = state.withLockedValue { state -> Attempt? in
            state.failures.removeAll { $0 + Self.failurePeriod <= now }
            if state.failures.count >= Self.maxFailures, let first = state.failures.first {
                return .limited(retryAfter: first + Self.failurePeriod - now)
            }
            if isRight { return nil }
            state.failures.append(now)
            return .wrongKey
        }
        if let refusal { return refusal }
        let cookie = [UInt8].random(32).base64URL
        let name = name(of: cookie)
        state.withLockedValue { state in
            state.sessions = state.sessions.filter { $0.value.expires > now }
            if state.sessions.count >= Self.maxSessions,
                let oldest = state.sessions.min(by: { $0.value.expires < $1.value.expires })
            {
                state.sessions[oldest.key] = nil
            }
            state.sessions[name] = Session(
                name: name, expires: now + Self.lifetime, csrfToken: [UInt8].random(32).base64URL)
        }
        return .accepted(cookie: cookie)
    }

    /// Returns the session of a cookie; `nil` if there is none.
    func session(cookie: String) -> Session? {
        let (name, now) = (name(of: cookie), now())
        return state.withLockedValue { state in
            guard let session = state.sessions[name], session.expires > now else { return nil }
            return session
        }
    }

    /// Ends a session.
    func logOut(_ session: Session) {
        state.withLockedValue { state in
            state.sessions[session.name] = nil
            state.confirmations = state.confirmations.filter { $0.value.session != session.name }
        }
    }

    /// Compares the token of a change in constant time.
    func isValid(csrfToken: String, of session: Session) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(
            Array(HMAC<SHA256>.authenticationCode(for: Array(session.csrfToken.utf8), using: codeKey)),
            authenticating: Array(csrfToken.utf8), using: codeKey)
    }

    // MARK: Confirmations

    /// Announces an action. Returns the token with which it can be confirmed once.
    func announce(_ action: DashboardAction, _ session: Session) -> String {
        let (token, now) = ([UInt8].random(32).base64URL, now())
        state.withLockedValue { state in
            state.confirmations = state.confirmations.filter { $0.value.expires > now }
            // An operator confirms one action at a time.
            state.confirmations = state.confirmations.filter { $0.value.session != session.name }
            state.confirmations[name(of: token)] = (session.name, action, now + Self.confirmationLifetime)
        }
        return token
    }

    /// Takes the action that a token confirms; `nil` if it is unknown, used, expired or another operator's.
    func confirmed(token: String, _ session: Session) -> DashboardAction? {
        let (name, now) = (name(of: token), now())
        return state.withLockedValue { state in
            guard let announced = state.confirmations[name], announced.session == session.name else { return nil }
            state.confirmations[name] = nil
            return announced.expires > now ? announced.action : nil
        }
    }

    private func name(of secret: String) -> String {
        HMAC<SHA256>.authenticationCode(for: Array(secret.utf8), using: codeKey).hexadecimal
    }
}
