import Hiredis

/// A message that a worker runs.
public struct Job: Sendable {
    /// The message.
    public let message: ReceivedMessage
    /// How often it was taken, with this time: 1 for the first.
    public let attempt: Int
    /// Grows with each job of the mailbox that is taken. A store that remembers the highest fence it
    /// has seen for a job's subject can refuse a worker that was believed dead, and still writes.
    public let fence: UInt64

    /// Its order key, if it has one: see ``Message/orderKey``.
    public let orderKey: String?

    let mailbox: Mailbox
    let worker: Worker
    /// The worker's life in which it has taken the job.
    let process: String
    let tag: UInt64

    /// The time for which no other worker runs the job, if this process cannot reach Redis from now on. Zero when others
    /// may run it already.
    ///
    /// Each heartbeat of the worker prolongs it. A helper that must end with the job, such as another process, ends
    /// itself when this time is over.
    public var remaining: Duration { worker.remaining(of: process) }
}

/// Thrown by a handler that could not try its job: others may, and the attempt does not count. The worker must stop, as
/// it would take the job again.
package struct JobReturned: Error {
    package init() {}
}

/// Thrown by a handler for a job that would fail each time: it is not tried again.
public struct JobRejection: Error, Sendable, CustomStringConvertible {
    /// Why, for those who look at the failed jobs.
    public var reason: String
    /// Creates an error.
    public init(_ reason: String) { self.reason = reason }
    /// The reason.
    public var description: String { reason }
}
