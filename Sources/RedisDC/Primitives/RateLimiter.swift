// So many in a time, for all nodes together.
import Hiredis
import CoordinationBase

/// Limits how often something happens, over all nodes: the generic cell rate algorithm, in one script.
///
/// ```swift
/// let limiter = try coordinator.rateLimiter("api", rate: 100, per: .seconds(1), burst: 20)
/// guard try await limiter.tryAcquire().isAllowed else { throw TooManyRequests() }
/// try await limiter.acquire(timeout: .seconds(2))     // or wait for it
/// ```
///
/// - Over any time t at most `burst` + t × rate pass. Redis's clock counts, not the nodes'.
/// - Nothing is held, so nothing is lost when a process dies. Who waits is not in a queue: who comes at the right moment
///   passes first. For a fair turn use a ``Semaphore``.
/// - When a reply is lost it is not asked again, and what was asked for may count.
public struct RateLimiter: Sendable {
    /// What became of a question.
    public struct Decision: Sendable, Hashable {
        public var isAllowed: Bool
        /// How long until as much would be allowed, if nobody else comes. Zero when it was.
        public var retryAfter: Duration
        /// How many more would be allowed now.
        public var remaining: Int
    }

    public let name: String
    let key: String
    let redis: any Redis
    let microsecondsEach: Double
    public let burst: Int

    /// Passes if it may now.
    ///
    /// - Parameter cost: how many it counts as, 1 to `burst`.
    /// - Throws: `.invalidArgument`; `.connectionLost`, `.notConnected` and what else keeps a command from being answered.
    public func tryAcquire(cost: Int = 1) async throws(RedisDCError) -> Decision {
        guard (1...burst).contains(cost) else {
            throw RedisDCError(.invalidArgument, "cost is \(cost), expected 1 to the burst, \(burst)")
        }
        let reply: RESPValue
        do {
            reply = try await redis.script(
                Scripts.rateLimit, keys: [key],
                arguments: [.string("\(microsecondsEach)"), .integer(burst), .integer(cost)])
        } catch { throw RedisDCError(error, key: key) }
        guard let parts = reply.array, parts.count == 3, let wait = parts[1].number, let left = parts[2].number else {
            throw RedisDCError(.serverError, "unexpected reply \(reply)")
        }
        return Decision(isAllowed: parts[0].integer == 1, retryAfter: .microseconds(wait), remaining: left)
    }

    /// Waits until it may pass.
    ///
    /// - Parameter timeout: `nil` waits as long as it takes.
    /// - Throws: `.timedOut` as soon as it is certain that the time will not do, `.cancelled`, and what
    ///   ``tryAcquire(cost:)`` throws.
    public func acquire(cost: Int = 1, timeout: Duration? = nil) async throws(RedisDCError) {
        if let timeout, timeout < .zero {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        let deadline = timeout.map { ContinuousClock.now + min($0, .maxWait) }
        while true {
            let decision = try await tryAcquire(cost: cost)
            if decision.isAllowed { return }
            if let deadline, ContinuousClock.now + decision.retryAfter > deadline {
                throw RedisDCError(.timedOut, "\"\(name)\" will not allow it in time")
            }
            do { try await Task.sleep(for: decision.retryAfter) } catch {
                throw RedisDCError(.cancelled, "the task was cancelled")
            }
        }
    }
}

extension Coordinator {
    /// A rate limiter that all nodes share. All should give the same numbers: each decides by its own.
    ///
    /// - Parameters:
    ///   - rate: how many in `period`, 1 to 1,000,000,000.
    ///   - period: from 1 ms to 366 days.
    ///   - burst: how many at once at most when there was a pause, 1 to 1,000,000,000; `nil` is `rate`. It takes at
    ///     most 4,000 years to come back.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func rateLimiter(
        _ name: String, rate: Int, per period: Duration, burst: Int? = nil
    ) throws(RedisDCError) -> RateLimiter {
        try ResourceName.validate(name)
        let most = 1_000_000_000
        guard (1...most).contains(rate), (1...most).contains(burst ?? rate) else {
            throw RedisDCError(
                .invalidArgument, "rate is \(rate) and burst \(burst ?? rate), expected 1 to \(most)")
        }
        guard (.milliseconds(1) ... .seconds(366 * 86400)).contains(period) else {
            throw RedisDCError(.invalidArgument, "the period is \(period), expected 1 ms to 366 days")
        }
        let each = Double(period.wholeMicroseconds) / Double(rate)
        // Redis's times to live are whole numbers, and the script's are doubles.
        let years = 4_000
        guard each * Double(burst ?? rate) <= Double(years) * 366 * 86400 * 1e6 else {
            throw RedisDCError(
                .invalidArgument,
                "a burst of \(burst ?? rate) at \(rate) in \(period) takes more than \(years) years to come back")
        }
        return RateLimiter(
            name: name, key: place.key("rate:\(name)", partition: place.partition(of: name)), redis: redis,
            microsecondsEach: each, burst: burst ?? rate)
    }
}
