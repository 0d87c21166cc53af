// Request numbers, and up to which one all are settled.

/// Numbers the requests of a session, and knows up to which number all replies have arrived.
///
/// The server keeps the reply to a request until the client reports that it has arrived, so that a request that is sent a
/// second time has no second effect. Reporting it rarely is enough.
package struct RequestWindow: Sendable {
    /// The number of newly settled requests that makes a report worthwhile.
    package static let stride: UInt64 = 32

    private var last: UInt64 = 0
    private var settledUpTo: UInt64 = 0
    private var settledBeyond: Set<UInt64> = []
    private var reported: UInt64 = 0

    package init() {}

    /// Returns the number of a new request.
    package mutating func next() -> UInt64 {
        last += 1
        return last
    }

    /// Records that the reply to a request has arrived, or that the request will not be sent again.
    package mutating func settle(_ number: UInt64) {
        guard number == settledUpTo + 1 else {
            if number > settledUpTo { settledBeyond.insert(number) }
            return
        }
        settledUpTo = number
        while settledBeyond.remove(settledUpTo + 1) != nil { settledUpTo += 1 }
    }

    /// Returns the number to report with the next request, or `nil` when it is not worthwhile yet.
    ///
    /// - Parameter always: reports anything new, however little.
    package mutating func report(always: Bool = false) -> UInt64? {
        guard settledUpTo > reported, always || settledUpTo - reported >= Self.stride else { return nil }
        reported = settledUpTo
        return reported
    }
}
