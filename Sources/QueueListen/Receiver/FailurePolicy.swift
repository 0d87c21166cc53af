// What a receiver does when a handler throws.

/// What a ``Receiver`` does with a message whose handler throws.
public struct FailurePolicy: Sendable {
    enum End: Sendable {
        case stop
        case deadLetter(String)
    }
    /// How often a message is handed to its handler; `nil`: until it returns.
    var attempts: Int?
    var pause: ClosedRange<Duration>
    var end: End

    /// Hands it over again until the handler returns, with growing pauses. Later messages wait: the order stays.
    public static func retry(pause: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10))) -> FailurePolicy {
        FailurePolicy(attempts: nil, pause: pause, end: .stop)
    }

    /// After so many attempts `run()` throws the handler's error. The message is not acknowledged: it comes again.
    public static func stop(
        afterAttempts attempts: Int = 1, pause: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10))
    ) -> FailurePolicy {
        FailurePolicy(attempts: max(1, attempts), pause: pause, end: .stop)
    }

    /// After so many attempts the message is sent to another mailbox, and the next one's turn comes. It gets the headers
    /// `dead-letter-mailbox`, `dead-letter-index`, `dead-letter-id` and `dead-letter-reason`, and arrives there once, also
    /// when the process dies in between.
    public static func deadLetter(
        to mailbox: String, afterAttempts attempts: Int = 3,
        pause: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10))
    ) -> FailurePolicy {
        FailurePolicy(attempts: max(1, attempts), pause: pause, end: .deadLetter(mailbox))
    }
}
