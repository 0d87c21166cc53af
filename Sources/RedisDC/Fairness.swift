// The order in which waiters are served.

/// The order in which a semaphore serves waiters.
public enum Fairness: Sendable, Hashable {
    /// First come, first served. No waiter is overtaken, however many permits the first one wants.
    case fifo
    /// A caller that asks while there are enough permits gets them, even if others wait. The throughput is higher, and a
    /// waiter for many permits may starve.
    case barging
}
