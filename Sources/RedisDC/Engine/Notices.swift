// Counts the changes of a session's claims by others: the count shows whether wake-ups were lost or come from another
// server.

/// The notices of a session: how many of its claims others have granted or ended, as far as the process knows.
///
/// Redis counts them in the session's record, and every wake-up and every reply to a heartbeat contains the count. Each
/// connection for commands has a count of its own, whose upper half is the number of the connection. So a wake-up that
/// was counted for another connection, for example by an old master after a failover, is recognized and not believed.
struct Notices {
    /// The conclusion from the count in a wake-up.
    enum Conclusion {
        /// All notices up to this wake-up are known.
        case complete
        /// Wake-ups before this one were lost.
        case incomplete
        /// The wake-up was not counted for this connection: its content may be wrong.
        case foreign
    }

    /// The count that is known.
    private(set) var count: UInt64 = 0

    /// The number of the connection.
    var connection: UInt64 { count >> 32 }

    /// Handles a new connection.
    mutating func reconnected() {
        // A record in Redis is a double, whose integers have 53 bits.
        count = min(connection + 1, 1 << 20) << 32
    }

    /// Handles a wake-up with this number of notices, after which Redis had counted `total`.
    mutating func receive(_ number: Int, upTo total: UInt64) -> Conclusion {
        if number == 0 { return .complete }
        guard total >> 32 == connection, UInt32(truncatingIfNeeded: total) > 0 else { return .foreign }
        // A reply to a heartbeat may have overtaken the wake-up.
        guard total > count else { return .complete }
        let isComplete = total - count <= UInt64(number)
        count = total
        return isComplete ? .complete : .incomplete
    }

    /// Compares with the count in the reply to a heartbeat.
    ///
    /// - Parameter known: the count that was known when the heartbeat was sent.
    /// - Returns: whether all notices are known. If not, they count as known from now on.
    mutating func compare(with total: UInt64, known: UInt64) -> Bool {
        // The reply to a heartbeat of an earlier connection.
        guard total >> 32 >= connection else { return true }
        // Redis has counted fewer than it had before: it has lost data. A wake-up may have overtaken the reply.
        let isComplete = total >= known && total <= count
        if !isComplete { count = total }
        return isComplete
    }
}
