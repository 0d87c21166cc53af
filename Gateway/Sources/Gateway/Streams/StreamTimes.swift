/// The times that an open stream watches: the end of its session, a write that takes too long, and the next sign of life.
///
/// It does nothing itself: the owner asks it when to wake up, and what to do then.
struct StreamTimes {
    typealias Instant = ContinuousClock.Instant

    enum Action: Equatable, Sendable {
        /// The session has reached its end. Once.
        case expire
        /// The client takes nothing of what is written to it.
        case closeSlowReader
        /// Nothing was written for a while.
        case keepAlive
    }

    private let keepAliveInterval: Duration
    private let maxWriteTime: Duration
    /// `nil` once it has passed: a write that is under way is watched further.
    private var expires: Instant?
    private var keepAliveAt: Instant

    init(_ configuration: GatewayConfiguration, expires: Instant, now: Instant) {
        keepAliveInterval = configuration.keepAliveInterval
        maxWriteTime = configuration.maxWriteTime
        self.expires = expires
        keepAliveAt = now + keepAliveInterval
    }

    /// The time at which to call ``actions(at:writingSince:)`` next. It is always later than `now` once that has been
    /// called for `now`.
    func wakeUp(after now: Instant) -> Instant {
        let next = now + min(keepAliveInterval, maxWriteTime) / 2
        return expires.map { min(next, $0) } ?? next
    }

    /// Returns what is to be done.
    ///
    /// - Parameter writingSince: the time at which the write began that is under way.
    mutating func actions(at now: Instant, writingSince: Instant?) -> [Action] {
        var actions: [Action] = []
        if let end = expires, now >= end {
            expires = nil
            actions.append(.expire)
        }
        if let writingSince {
            if now - writingSince > maxWriteTime { actions.append(.closeSlowReader) }
        } else if now >= keepAliveAt {
            keepAliveAt = now + keepAliveInterval
            actions.append(.keepAlive)
        }
        return actions
    }
}
