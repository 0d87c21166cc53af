/// The policy of a ``Receiver`` for a message whose handler throws.
///
/// The pause between two attempts grows from the lower to the upper bound of `pause`, doubling each
/// time. Later messages wait meanwhile, so that the order is kept.
public struct FailurePolicy: Sendable {
    enum End: Sendable {
        case stop
        case deadLetter(String)
    }
    /// The maximum number of attempts; `nil` for no maximum.
    var attempts: Int?
    var pause: ClosedRange<Duration>
    var end: End

    /// Calls the handler again until it returns. Each failure is logged and counted.
    public static func retry(pause: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10))) -> FailurePolicy {
        FailurePolicy(attempts: nil, pause: pause, end: .stop)
    }

    /// Ends ``Receiver/run()`` with the handler's error after a number of attempts.
    ///
    /// The message is not acknowledged: it is delivered again to the next run.
    ///
    /// - Parameter attempts: the number of attempts, from 1.
    public static func stop(
        afterAttempts attempts: Int = 1, pause: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10))
    ) -> FailurePolicy {
        FailurePolicy(attempts: max(1, attempts), pause: pause, end: .stop)
    }

    /// Sends the message to a dead-letter mailbox after a number of attempts, and continues with
    /// the next message.
    ///
    /// The copy has the additional headers `dead-letter-mailbox`, `dead-letter-index`,
    /// `dead-letter-id` and `dead-letter-reason`. It arrives in the dead-letter mailbox once, also
    /// if the process dies in between and the message is delivered again within
    /// ``PostOfficeConfiguration/sendIDLifetime``.
    ///
    /// - Parameters:
    ///   - mailbox: the name of the dead-letter mailbox, which is created if it does not exist.
    ///   - attempts: the number of attempts, from 1.
    public static func deadLetter(
        to mailbox: String, afterAttempts attempts: Int = 3,
        pause: ClosedRange<Duration> = .milliseconds(100)...(.seconds(10))
    ) -> FailurePolicy {
        FailurePolicy(attempts: max(1, attempts), pause: pause, end: .deadLetter(mailbox))
    }
}
