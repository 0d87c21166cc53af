/// The order in which a semaphore serves concurrent waiters.
public enum Fairness: Sendable, Hashable {
    /// First come, first served. No wait overtakes another, however many permits the first one
    /// needs.
    case fifo
    /// A request that finds enough free permits gets them even if others wait. Throughput is
    /// higher, and a waiter that needs many permits at once may wait forever.
    case barging
}

extension Fairness {
    /// The letter of the policy: see layout.lua.
    var letter: Unicode.Scalar {
        switch self {
        case .fifo: "f"
        case .barging: "b"
        }
    }
}
