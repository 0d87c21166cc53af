// What Redis has confirmed lately of sends that are due later, to be repeated if a failover loses it.
import CoordinationBase
import DequeModule

/// A send that was scheduled.
struct ConfirmedSchedule: Sendable {
    let id: String
    /// Identifies the call that has scheduled it.
    let call: UInt64
    let encoded: [UInt8]
    let fingerprint: String
    /// The text of the rule of a recurring send; empty for one that is sent once.
    let rule: String
    /// Whether it was recorded when it was confirmed, and not before.
    let isInOrder: Bool
    /// When it is due, in milliseconds since 1970.
    var time = 0
    /// How often a recurring send was recorded until then.
    var version = 0
}

/// The last confirmed schedules and cancellations by one process, the oldest first.
struct ConfirmedSchedules: ConfirmationLog {
    enum Change: Sendable {
        case scheduled(ConfirmedSchedule)
        /// - Parameter calls: those which had scheduled the send.
        case cancelled(String, calls: [UInt8])

        var id: String {
            switch self {
            case .scheduled(let schedule): schedule.id
            case .cancelled(let id, _): id
            }
        }
    }

    struct Entry: ConfirmedRequest {
        let change: Change
        let confirmedAt: Duration

        // The record of the send.
        var recordCount: Int { 1 }
        var isInOrder: Bool { if case .scheduled(let schedule) = change { schedule.isInOrder } else { true } }

        /// About the number of bytes that it takes.
        var size: Int {
            switch change {
            case .scheduled(let schedule):
                256 + schedule.id.utf8.count + schedule.encoded.count + schedule.rule.utf8.count
            case .cancelled(let id, let calls): 192 + id.utf8.count + calls.count
            }
        }
    }

    private(set) var entries = Deque<Entry>()
    private let maxAge: Duration
    private let maxBytes: Int
    private var bytes = 0

    init(maxAge: Duration, maxBytes: Int) { (self.maxAge, self.maxBytes) = (maxAge, maxBytes) }

    mutating func append(_ change: Change, at now: Duration) {
        guard maxBytes > 0, maxAge > .zero else { return }
        if case .cancelled(let id, _) = change {
            // It must not be scheduled again.
            entries.removeAll { $0.change.id.utf8.elementsEqual(id.utf8) }
            bytes = entries.reduce(0) { $0 + $1.size }
        }
        let entry = Entry(change: change, confirmedAt: now)
        entries.append(entry)
        bytes += entry.size
        forgetOld(now)
    }

    /// Forgets what is older than the time, and what exceeds the bytes.
    mutating func forgetOld(_ now: Duration) {
        while let first = entries.first, bytes > maxBytes || first.confirmedAt + maxAge < now {
            bytes -= first.size
            entries.removeFirst()
        }
    }
}
