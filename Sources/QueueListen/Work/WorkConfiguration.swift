import Hiredis

/// The settings of workers: see ``Mailbox/work(_:_:)``.
public struct WorkConfiguration: Sendable {
    /// The maximum number of jobs that this worker runs at the same time: 1 to 256.
    public var concurrency = 8
    /// The time after which other workers run the jobs of a worker that is dead: 1 second to 1 hour.
    /// The worker renews it by itself, however long a job takes.
    public var ttl: Duration = .seconds(15)
    /// How often a job is tried before it counts as failed for good: 1 to 1,000.
    public var attempts = 5
    /// The pause after the first failure, which doubles with each further one up to the upper bound:
    /// 1 ms to 30 days. Each pause is a random time between half of that and all of it.
    public var pause: ClosedRange<Duration> = .seconds(1)...(.seconds(600))
    /// How long a worker that stops waits for its jobs, before it cancels their handlers: 0 to 1 day.
    /// Others run the jobs whose handlers throw then.
    public var grace: Duration = .seconds(30)
    /// The maximum number of jobs that have failed for good and are kept; the oldest are forgotten.
    /// 0 to 1,000,000.
    public var maxFailed = 10_000
    /// Called when a handler has ended, or a job was given up without one. `isFinal`: the job will not run again.
    package var jobEnded: (@Sendable (_ isFinal: Bool) -> Void)?
    /// Creates the default settings.
    public init() {}

    /// - Throws: `.invalidArgument`.
    func validate() throws(QueueListenError) {
        func require(_ holds: Bool, _ text: @autoclosure () -> String) throws(QueueListenError) {
            if !holds { throw QueueListenError(.invalidArgument, text()) }
        }
        try require((1...256).contains(concurrency), "concurrency is \(concurrency), expected 1 to 256")
        try require(ttl >= .seconds(1) && ttl <= .seconds(3600), "ttl is \(ttl), expected 1 second to 1 hour")
        try require((1...1000).contains(attempts), "attempts is \(attempts), expected 1 to 1,000")
        try require(
            pause.lowerBound >= .milliseconds(1) && pause.upperBound <= .seconds(30 * 86_400),
            "pause is \(pause), expected times from 1 ms to 30 days")
        try require(grace >= .zero && grace <= .seconds(86_400), "grace is \(grace), expected 0 to 1 day")
        try require((0...1_000_000).contains(maxFailed), "maxFailed is \(maxFailed), expected 0 to 1,000,000")
    }

    /// The pause after a failure.
    ///
    /// - Parameter attempt: the number of attempts so far.
    func pause(after attempt: Int) -> Duration {
        let longest = min(pause.lowerBound * (1 << min(attempt - 1, 40)), pause.upperBound)
        return longest * Double.random(in: 0.5...1)
    }
}
