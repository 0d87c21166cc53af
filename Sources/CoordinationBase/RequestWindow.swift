// Numbers for requests, and how far they are settled.

/// Gives each request of a session its number, and knows up to which one all answers have arrived.
///
/// The server keeps the answer to a request until it hears that it has arrived, so that the same request sent a second
/// time has no second effect. Hearing it rarely is enough.
package struct RequestWindow: Sendable {
    /// So many more must be settled before it is worth telling.
    package static let stride: UInt64 = 32

    private var last: UInt64 = 0
    private var settledUpTo: UInt64 = 0
    private var settledBeyond: Set<UInt64> = []
    private var told: UInt64 = 0

    package init() {}

    package mutating func next() -> UInt64 {
        last += 1
        return last
    }

    package mutating func settle(_ number: UInt64) {
        guard number == settledUpTo + 1 else {
            if number > settledUpTo { settledBeyond.insert(number) }
            return
        }
        settledUpTo = number
        while settledBeyond.remove(settledUpTo + 1) != nil { settledUpTo += 1 }
    }

    /// What to tell the server with the next request, if it is worth it.
    package mutating func news(always: Bool = false) -> UInt64? {
        guard settledUpTo > told, always || settledUpTo - told >= Self.stride else { return nil }
        told = settledUpTo
        return told
    }
}
