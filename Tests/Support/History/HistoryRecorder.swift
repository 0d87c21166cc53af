// Writes down when operations begin and end, so that a test can judge what several processes did.
import Foundation

/// Appends to a file of the process's own, one line for each moment: what was written stays when the process is killed.
///
/// Times are CLOCK_MONOTONIC, which all processes of one machine share.
public final class HistoryRecorder: Sendable {
    /// What was asked for. `take` leases and `wait` consumes; a `try` does not queue. `down` and `pass` are of a latch,
    /// `arrive` of a barrier.
    public enum Verb: String, Sendable {
        case take, tryTake, wait, tryWait, release, signal, down, pass, arrive
    }

    /// How it ended. `unknown`: it may have taken effect, or may yet.
    public enum Outcome: String, Sendable {
        case ok, refused, timedOut, cancelled, lost, unknown
    }

    private let file: Int32
    private let process = ProcessInfo.processInfo.processIdentifier

    public init(path: String) {
        file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        precondition(file >= 0, "cannot write \(path)")
    }

    deinit { close(file) }

    /// - Parameters:
    ///   - id: not used by any other call of this process.
    ///   - claim: of a `release`, the id of the call that took it.
    public func call(
        _ id: Int, task: Int, _ verb: Verb, _ resource: String, _ count: Int, claim: Int = 0, timeout: Duration? = nil
    ) {
        let limit = timeout.map { String(Int($0 / .nanoseconds(1))) } ?? "-"
        write("call \(process) \(id) \(Self.now) \(task) \(verb.rawValue) \(resource) \(count) \(claim) \(limit)")
    }

    /// - Parameter value: of a latch how many were still to come, of a barrier generation * 1024 + arrival.
    public func back(_ id: Int, _ outcome: Outcome, fence: UInt64 = 0, value: Int? = nil) {
        let end = value.map { " \($0)" } ?? ""
        write("back \(process) \(id) \(Self.now) \(outcome.rawValue) \(fence)\(end)")
    }

    /// Whoever called has given up.
    public func cancel(_ id: Int) { write("cancel \(process) \(id) \(Self.now)") }

    /// What `id` took was held at a moment before `isHeld` was asked.
    public func held(_ id: Int, isHeld: () -> Bool) {
        let time = Self.now
        if isHeld() { write("held \(process) \(id) \(time)") }
    }

    /// The process has lost a session: what it held is free at some time.
    public func lostSession() { write("lost \(process) 0 \(Self.now)") }

    public static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private func write(_ line: String) {
        // In one piece, so that lines of several threads do not mix.
        var line = line + "\n"
        let written = line.withUTF8 { Foundation.write(file, $0.baseAddress, $0.count) }
        precondition(written == line.utf8.count)
    }
}
