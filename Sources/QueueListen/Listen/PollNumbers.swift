// The numbers of polls.
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Makes the numbers of calls and polls, on any thread.
///
/// A number is the time in microseconds since 1970, or one more than the last. So the numbers of a process grow, and
/// those of several processes can be compared if their clocks agree. The script `listen` does that where it cannot know
/// whether Redis has lost the beginning of a poll or has forgotten it.
final class PollNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    func next() -> UInt64 {
        let now = UInt64(max(0, Date().timeIntervalSince1970) * 1e6)
        var known = last.load(ordering: .relaxed)
        while true {
            let next = max(known + 1, now)
            let (exchanged, original) = last.weakCompareExchange(expected: known, desired: next, ordering: .relaxed)
            if exchanged { return next }
            known = original
        }
    }
}
