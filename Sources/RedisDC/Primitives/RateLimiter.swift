// A rate limit for all nodes together, decided by one script on Redis.
import CoordinationBase
import Hiredis

/// A rate limit that all nodes share, by the generic cell rate algorithm in one script.
///
/// ```swift
/// let limiter = try coordinator.rateLimiter("api", rate: 100, per: .seconds(1), burst: 20)
/// guard try await limiter.tryAcquire().isAllowed else { throw TooManyRequests() }
/// try await limiter.acquire(timeout: .seconds(2))     // or wait for it
/// ```
///
/// **Guarantees**
/// - In any interval t at most `burst` + t × rate requests are allowed, by Redis's clock and not
///   the nodes'.
/// - Nothing is held, so the death of a process loses nothing.
///
/// **Limits**
/// - Waiting callers do not queue: the one that asks at the right moment is allowed first. For a
///   fair turn use a ``Semaphore``.
/// - When a reply is lost the request is not sent again, and may have been counted.
public struct RateLimiter: Sendable {
    /// The answer to one request.
    public struct Decision: Sendable, Hashable {
        /// Whether the request is allowed.
        public var isAllowed: Bool
        /// The time until the same request would be allowed, if no other comes first. Zero when it
        /// is allowed.
        public var retryAfter: Duration
        /// The number of further requests that would be allowed now.
        public var remaining: Int
    }

    /// The name of the limit.
    public let name: String
    let key: String
    let redis: any Redis
    let clock: MonotonicClock
    let microsecondsEach: Double
    /// The number of requests that are allowed at once after a pause.
    public let burst: Int

    /// Asks whether a request is allowed now, and counts it if it is.
    ///
    /// - Parameter cost: the number of requests that it counts as, 1 to `burst`.
    /// - Throws: `.invalidArgument`; `.connectionLost` with `mayHaveRun`, `.notConnected` and other
    ///   failures of a command.
    public func tryAcquire(cost: Int = 1) async throws(RedisDCError) -> Decision {
        guard (1...burst).contains(cost) else {
            throw RedisDCError(
                .invalidArgument,
                "cannot ask rate limiter \"\(name)\": cost is \(cost), expected 1 to the burst, \(burst)")
        }
        let reply: RESPValue
        do {
            reply = try await redis.script(
                Scripts.rateLimit, keys: [key],
                arguments: [.string("\(microsecondsEach)"), .integer(burst), .integer(cost)])
        } catch { throw RedisDCError(error, key: key) }
        guard let parts = reply.array, parts.count == 3, let wait = parts[1].number, let left = parts[2].number else {
            throw RedisDCError(.serverError, "unexpected reply: \(reply.form)")
        }
        return Decision(isAllowed: parts[0].integer == 1, retryAfter: .microseconds(wait), remaining: left)
    }

    /// Waits until a request is allowed, and counts it.
    ///
    /// - Parameters:
    ///   - cost: the number of requests that it counts as, 1 to `burst`.
    ///   - timeout: 0 or more; `nil` waits without limit.
    /// - Throws: `.timedOut` as soon as it is certain that the request cannot be allowed in time,
    ///   `.cancelled` (nothing was counted, unless `mayHaveRun` is set), and what
    ///   ``tryAcquire(cost:)`` throws.
    public func acquire(cost: Int = 1, timeout: Duration? = nil) async throws(RedisDCError) {
        if let timeout, timeout < .zero {
            throw RedisDCError(
                .invalidArgument,
                "cannot ask rate limiter \"\(name)\": timeout is \(timeout), expected 0 or more")
        }
        let deadline = timeout.map { clock.now() + min($0, .maxWait) }
        while true {
            let decision = try await tryAcquire(cost: cost)
            if decision.isAllowed { return }
            if let deadline, clock.now() + decision.retryAfter > deadline {
                throw RedisDCError(
                    .timedOut,
                    "cannot pass rate limiter \"\(name)\" within the timeout of \(timeout ?? .zero): "
                        + "the next is allowed in \(decision.retryAfter)")
            }
            do { try await clock.sleep(decision.retryAfter) } catch {
                throw RedisDCError(.cancelled, "cannot pass rate limiter \"\(name)\": the task was cancelled")
            }
        }
    }
}

extension Coordinator {
    /// Returns a rate limiter that all nodes share. All nodes should use the same numbers: each
    /// request is decided by those of its own handle.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - rate: the number of requests in `period`, 1 to 1,000,000,000.
    ///   - period: 1 ms to 366 days.
    ///   - burst: the maximum number at once after a pause, 1 to 1,000,000,000; `nil` is `rate`. It
    ///     must take at most 4,000 years to refill.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func rateLimiter(
        _ name: String, rate: Int, per period: Duration, burst: Int? = nil
    ) throws(RedisDCError) -> RateLimiter {
        try ResourceName.validate(name)
        func require(_ holds: Bool, _ fault: @autoclosure () -> String) throws(RedisDCError) {
            if !holds { throw RedisDCError(.invalidArgument, "cannot make rate limiter \"\(name)\": \(fault())") }
        }
        let max = 1_000_000_000
        let burst = burst ?? rate
        try require((1...max).contains(rate), "rate is \(rate), expected 1 to \(max)")
        try require((1...max).contains(burst), "burst is \(burst), expected 1 to \(max)")
        try require(
            (.milliseconds(1) ... .seconds(366 * 86400)).contains(period),
            "period is \(period), expected 1 ms to 366 days")
        let each = Double(period.wholeMicroseconds) / Double(rate)
        // Redis's expiry times are whole numbers, and the script's numbers are doubles.
        let years = 4_000
        try require(
            each * Double(burst) <= Double(years) * 366 * 86400 * 1e6,
            "a burst of \(burst) at \(rate) per \(period) takes more than \(years) years to refill")
        return RateLimiter(
            name: name, key: EngineKeys(keyspace).rateLimiter(name), redis: redis,
            clock: clock, microsecondsEach: each, burst: burst)
    }
}

extension Scripts {
    static let rateLimit = RedisScript(embedded: PackageResources.rate_limit_lua)
}
