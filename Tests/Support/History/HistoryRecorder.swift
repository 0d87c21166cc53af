// Records when operations start and end, so that a test can check the operations of several processes.
import Foundation

/// A recorder of the operations of one process.
///
/// It appends one line per event to the process's own file, so the lines survive when the process
/// is killed. Times are those of CLOCK_MONOTONIC, which all processes of a machine share.
public final class HistoryRecorder: Sendable {
    /// The kind of an operation.
    public enum Verb: String, Sendable {
        /// Acquires a lease, and waits if necessary.
        case take
        /// Acquires a lease without waiting.
        case tryTake
        /// Consumes permits, and waits if necessary.
        case wait
        /// Consumes permits without waiting.
        case tryWait
        /// Releases a lease.
        case release
        /// Adds permits.
        case signal
        /// Counts a latch down.
        case down
        /// Waits until a latch opens.
        case pass
        /// Arrives at a barrier.
        case arrive
    }

    /// The outcome of an operation.
    public enum Outcome: String, Sendable {
        /// The operation succeeded.
        case ok
        /// An operation without waiting found no permit.
        case refused
        /// The operation timed out.
        case timedOut
        /// The operation was cancelled.
        case cancelled
        /// The session was lost.
        case lost
        /// The operation may have taken effect, or may still take effect.
        case unknown
    }

    private let file: Int32
    private let process = ProcessInfo.processInfo.processIdentifier

    /// Creates a recorder that appends to the file at a path.
    public init(path: String) {
        file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        precondition(file >= 0, "cannot open \(path) for writing: errno \(errno)")
    }

    deinit { close(file) }

    /// Records the start of an operation.
    ///
    /// - Parameters:
    ///   - id: the ID of the operation, unique in this process.
    ///   - task: the number of the task that performs the operation.
    ///   - verb: the kind of the operation.
    ///   - resource: the name of the resource.
    ///   - count: the number of permits.
    ///   - claim: for `release`, the ID of the operation that acquired the lease.
    ///   - timeout: the timeout of the operation; nil for none.
    public func call(
        _ id: Int, task: Int, _ verb: Verb, _ resource: String, _ count: Int, claim: Int = 0, timeout: Duration? = nil
    ) {
        let limit = timeout.map { String(Int($0 / .nanoseconds(1))) } ?? "-"
        write("call \(process) \(id) \(Self.now) \(task) \(verb.rawValue) \(resource) \(count) \(claim) \(limit)")
    }

    /// Records the end of an operation.
    ///
    /// - Parameters:
    ///   - id: the ID of the operation.
    ///   - outcome: the outcome of the operation.
    ///   - fence: the fence of the lease; 0 for none.
    ///   - value: for a latch the remaining count, for a barrier generation * 1024 + arrival index.
    public func back(_ id: Int, _ outcome: Outcome, fence: UInt64 = 0, value: Int? = nil) {
        let end = value.map { " \($0)" } ?? ""
        write("back \(process) \(id) \(Self.now) \(outcome.rawValue) \(fence)\(end)")
    }

    /// Records that the caller of an operation has cancelled it.
    public func cancel(_ id: Int) { write("cancel \(process) \(id) \(Self.now)") }

    /// Records that a lease was held, at a time read before `isHeld` is evaluated.
    ///
    /// - Parameters:
    ///   - id: the ID of the operation that acquired the lease.
    ///   - isHeld: returns whether the lease is held.
    public func held(_ id: Int, isHeld: () -> Bool) {
        let time = Self.now
        if isHeld() { write("held \(process) \(id) \(time)") }
    }

    /// Records that the process has lost a session. Its leases become free at an unknown time.
    public func lostSession() { write("lost \(process) 0 \(Self.now)") }

    /// The time of CLOCK_MONOTONIC in nanoseconds.
    public static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private func write(_ line: String) {
        // A single write, so that the lines of several threads do not mix.
        var line = line + "\n"
        let written = line.withUTF8 { Foundation.write(file, $0.baseAddress, $0.count) }
        precondition(written == line.utf8.count, "cannot record a history: a write was incomplete, errno \(errno)")
    }
}
