// Numbers requests, and tracks the number up to which all are settled.

/// Numbers the requests of a session, and tracks the number up to which all replies have arrived.
///
/// The server keeps the reply to a request until the client reports that it has arrived, so that a request that is sent
/// twice takes effect once. A report after every ``stride`` settled requests is enough.
package struct RequestWindow: Sendable {
    /// The number of newly settled requests after which they are reported.
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

    /// Returns the number to report with the next request, or `nil` when fewer than `stride` requests are newly
    /// settled.
    ///
    /// - Parameter always: reports even one newly settled request.
    package mutating func report(always: Bool = false) -> UInt64? {
        guard settledUpTo > reported, always || settledUpTo - reported >= Self.stride else { return nil }
        reported = settledUpTo
        return reported
    }
}
