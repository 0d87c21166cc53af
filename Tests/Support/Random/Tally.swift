// The counts of a long run of scripts/stress, for the table at its end.
import Foundation

/// The kinds of events that ``tally(_:_:)`` counts.
public enum Tallied: String, Sendable {
    /// A process killed or stopped, a connection cut, a reply lost, a server killed, paused or promoted, a record
    /// destroyed, a clock set.
    case fault
    /// An operation whose result was recorded.
    case operation
    /// A comparison of a result with what was promised.
    case promise
}

/// Adds to a count, in the file that the environment variable `REDISDC_TALLY` names; does nothing without it.
public func tally(_ what: Tallied, _ count: Int = 1) {
    guard count > 0, let path = tallyPath else { return }
    // One write of a short line at the end of a file is not mixed with those of other threads and processes.
    guard let file = fopen(path, "a") else { return }
    fputs("\(what.rawValue) \(count)\n", file)
    fclose(file)
}

private let tallyPath = ProcessInfo.processInfo.environment["REDISDC_TALLY"]
