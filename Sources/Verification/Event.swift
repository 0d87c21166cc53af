// The lines of a history.

/// One event of a history: an operation of a process or a notification to it, with its time.
///
/// A history contains no payloads: operations and messages are numbers, and resources are the names that the run has
/// chosen. docs/verify.md describes the fields of each kind.
package struct Event: Codable, Sendable, Equatable {
    /// The kind of an event.
    package enum Kind: String, Codable, Sendable {
        /// A claim on a lock or on permits is held.
        case enter
        /// A claim was held at this time.
        case held
        /// The holder of a claim was notified that it is lost.
        case lost
        /// An operation begins.
        case call
        /// An operation ends.
        case end
        /// A reader of a mailbox begins.
        case reads
        /// A reader has received a message.
        case got
        /// A reader was notified that messages may be missing.
        case gap
        /// A mailbox was read to its end after all processes had ended.
        case drained
        /// The process was notified that Redis has lost data.
        case dataLost
        /// The process has carried out operations again that Redis had lost. `note`: their number.
        case repaired
        /// The process was notified that its session is lost.
        case sessionLost
        /// An operation has failed, because Redis did not answer or refused it.
        case failed
        /// A process was started.
        case started
        /// A process is killed; recorded before the signal.
        case killed
        /// The deployment begins to fail over, or has failed over.
        case failover
        /// All servers of the deployment have recovered from the failover before.
        case healthy
        /// The permits that were available after all processes had ended.
        case value
        /// Whether a resource was free after all processes had ended.
        case free
    }

    /// The kind of an operation.
    package enum Verb: String, Codable, Sendable {
        case lock, lease, signal, wait, arrive, send
    }

    /// The outcome of an operation.
    package enum Outcome: String, Codable, Sendable {
        /// It has had its effect.
        case ok
        /// It has had no effect.
        case none
        /// It may have had its effect.
        case unknown
    }

    /// By CLOCK_MONOTONIC, in nanoseconds.
    package var time: UInt64
    /// The number of the process; 0 is the one that has started the others.
    package var process: Int
    package var kind: Kind
    package var resource: String?
    /// The number of the operation or claim, unique in its process.
    package var operation: Int?
    package var verb: Verb?
    /// The time at which the acquire of a claim began.
    package var called: UInt64?
    package var fence: UInt64?
    /// The number of permits or messages.
    package var count: Int?
    /// The number of permits that exist, or of parties that open a barrier.
    package var limit: Int?
    package var outcome: Outcome?
    /// The generation of a barrier.
    package var generation: UInt64?
    /// The place in a generation, or the index of a message.
    package var index: Int?
    /// The name of a mailbox's device.
    package var device: String?
    /// A message: the number of its sender, of its send and of its place in the send, with hyphens between them. The
    /// call of a send has the first two.
    package var message: String?
    /// The mailboxes to which a send goes.
    package var recipients: [String]?
    /// The kind of a gap, the code of an error, the kind of a failover, or ``turn``.
    package var note: String?

    /// The note of a claim that is the turn of a cohort.
    package static let turn = "turn"

    package init(
        _ kind: Kind, at time: UInt64, process: Int, _ resource: String? = nil, operation: Int? = nil,
        verb: Verb? = nil, called: UInt64? = nil, fence: UInt64? = nil, count: Int? = nil, limit: Int? = nil,
        outcome: Outcome? = nil, generation: UInt64? = nil, index: Int? = nil, device: String? = nil,
        message: String? = nil, recipients: [String]? = nil, note: String? = nil
    ) {
        (self.kind, self.time, self.process, self.resource) = (kind, time, process, resource)
        (self.operation, self.verb, self.called, self.fence) = (operation, verb, called, fence)
        (self.count, self.limit, self.outcome) = (count, limit, outcome)
        (self.generation, self.index, self.device) = (generation, index, device)
        (self.message, self.recipients, self.note) = (message, recipients, note)
    }

    private enum CodingKeys: String, CodingKey {
        case time = "t"
        case process = "p"
        case kind = "e"
        case resource = "r"
        case operation = "o"
        case verb = "v"
        case called = "c"
        case fence = "f"
        case count = "n"
        case limit = "l"
        case outcome = "x"
        case generation = "g"
        case index = "i"
        case device = "d"
        case message = "m"
        case recipients = "to"
        case note = "w"
    }
}
