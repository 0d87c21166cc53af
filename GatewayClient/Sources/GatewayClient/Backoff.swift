/// The delays between attempts. They are random, so that clients which lost a node do not all come back at once.
struct Backoff {
    let configuration: GatewayClientConfiguration
    let nodes: Int
    let random: @Sendable () -> Double

    /// Returns the time to wait after a failure.
    ///
    /// - Parameters:
    ///   - failures: the number of failures in a row before this one.
    ///   - retry: the delay that a stream has named.
    ///   - retryAfter: the least delay that a reply has demanded.
    func delay(failures: Int, retry: Duration? = nil, retryAfter: Duration? = nil) -> Duration {
        let base = retry ?? configuration.minDelay
        // A node that was not tried yet is tried soon.
        let longest =
            failures < nodes - 1
            ? base / 4 : min(configuration.maxDelay, base * (1 << min((failures + 1) / nodes - 1, 16)))
        let delay = longest * (0.5 + random() / 2)
        return max(delay, (retryAfter ?? .zero) * (1 + random() / 4))
    }
}
