// The acknowledgements that Redis has confirmed lately, to be repeated if a failover loses them.
import CoordinationBase
import DequeModule

/// The last confirmed acknowledgement of each device of this process, in the mailboxes of one partition.
struct ConfirmedAcknowledgements: ConfirmationLog {
    struct Acknowledgement: ConfirmedRequest, Equatable {
        let mailbox: String
        let device: String
        let cursor: Cursor

        var recordCount: Int { 1 }
        var isInOrder: Bool { true }
    }

    private struct Key: Hashable {
        let mailbox: ByteName
        let device: ByteName
    }

    /// The maximum number of devices that are remembered.
    static let capacity = 1 << 16

    private let maxAge: Duration
    private let capacity: Int
    private var acknowledgements: [Key: (acknowledgement: Acknowledgement, serial: UInt64)] = [:]
    /// The oldest first. One that was replaced has another serial.
    private var order = Deque<(key: Key, serial: UInt64, at: Duration)>()
    private var lastSerial: UInt64 = 0

    /// - Parameter maxAge: zero remembers nothing.
    init(maxAge: Duration, capacity: Int = Self.capacity) { (self.maxAge, self.capacity) = (maxAge, capacity) }

    /// Records what a device has acknowledged. An earlier position changes nothing, as on the server.
    mutating func record(_ acknowledgement: Acknowledgement, at now: Duration) {
        guard maxAge > .zero, acknowledgement.cursor.index > 0 else { return }
        let key = Key(mailbox: ByteName(acknowledgement.mailbox), device: ByteName(acknowledgement.device))
        if let known = acknowledgements[key]?.acknowledgement.cursor, known.epoch == acknowledgement.cursor.epoch,
            known.index >= acknowledgement.cursor.index
        {
            return
        }
        lastSerial += 1
        acknowledgements[key] = (acknowledgement, lastSerial)
        order.append((key, lastSerial, now))
        forgetOld(now)
    }

    mutating func forgetOld(_ now: Duration) {
        while let oldest = order.first, order.count > capacity || oldest.at + maxAge < now {
            order.removeFirst()
            if acknowledgements[oldest.key]?.serial == oldest.serial { acknowledgements[oldest.key] = nil }
        }
    }

    /// Forgets acknowledgements that cannot be repeated.
    mutating func remove(_ failed: [Acknowledgement]) {
        for acknowledgement in failed {
            let key = Key(mailbox: ByteName(acknowledgement.mailbox), device: ByteName(acknowledgement.device))
            if acknowledgements[key]?.acknowledgement == acknowledgement { acknowledgements[key] = nil }
        }
    }

    /// The acknowledgements, the oldest first.
    var oldestFirst: [Acknowledgement] {
        order.compactMap { entry in
            acknowledgements[entry.key].flatMap { $0.serial == entry.serial ? $0.acknowledgement : nil }
        }
    }
}
