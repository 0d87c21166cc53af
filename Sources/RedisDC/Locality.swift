// Whether a mutex may stay with one process for a while.

/// How a ``DistributedMutex`` is shared between the tasks of one process and other processes.
public enum Locality: Sendable, Hashable {
    /// All tasks of all processes wait in one queue: first come, first served.
    case strict

    /// The process acquires the mutex for all its tasks, and hands it over among them without
    /// asking Redis.
    ///
    /// The tasks of a process wait in a queue of their own, and one claim stands for them in the
    /// queue of all processes. Handing over within the process costs no round trip. This makes a
    /// mutex that is contended within processes many times as fast, and this is its price:
    ///
    /// - Another process may have to wait for up to `limit` tasks of the holding process that came
    ///   later than it, counted from the moment at which the holder learns of it. It learns of it
    ///   with the grant, or within one message from Redis (normally well below a millisecond);
    ///   should the message be lost, within a third of the session's TTL.
    /// - An unused mutex stays with the process for `linger`. A process that asks for it recalls
    ///   it, which costs it one message more than a free mutex. While the notification channel does
    ///   not work, it waits for the rest of `linger`.
    ///
    /// Exclusion, fences, timeouts, cancellation, and death of the process are the same as with
    /// ``strict``. Fences grow with every grant of this mutex, but fences of different mutexes can
    /// be equal.
    ///
    /// A body that ends after the end of the process's session throws `.lost`, as with ``strict``.
    /// The two differ in what a normal end says after a forced release, or after Redis has lost the
    /// lock (FLUSHALL, a failover): the release of a strict lock asks Redis and throws `.lost` at
    /// once, while a body that hands the mutex over asks nobody. The process asks for all its tasks,
    /// every 250 ms while they take turns. Bodies that end before the answer return normally although
    /// another process may have held the lock too. The one that is running then throws `.lost`, and
    /// after a loss of data ``Coordinator/events()`` yields the loss. Use ``Lease/fence`` where this
    /// matters, or ``strict``.
    ///
    /// The algorithm is lock cohorting (Dice, Marathe and Shavit, *Lock Cohorting*, 2012), with
    /// recalls as in distributed file systems.
    ///
    /// - Parameters:
    ///   - limit: how many grants in a row may stay within the process while another one waits, 1
    ///     to 1,000,000.
    ///   - linger: how long the process keeps the unused mutex, 0 to 60 seconds.
    case cohort(limit: Int = 128, linger: Duration = .milliseconds(50))

    /// - Throws: `.invalidArgument` for a value out of range.
    func validate(_ name: String) throws(RedisDCError) {
        guard case .cohort(let limit, let linger) = self else { return }
        try checkArgument("limit", limit, in: 1...1_000_000, cannot: "use mutex \"\(name)\"")
        try checkArgument("linger", linger, in: .zero ... .seconds(60), cannot: "use mutex \"\(name)\"")
    }
}
