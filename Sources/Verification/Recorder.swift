// Appends the events of one process to its own file.
import Foundation
import Synchronization

/// A recorder of the events of one process.
///
/// Each event is one write to a file that only this process appends to, so what was recorded survives a `kill -9`, and
/// only the last line can be incomplete.
package final class Recorder: Sendable {
    /// The number of the process.
    package let process: Int
    private let file: CInt
    private let operations = Atomic<Int>(0)

    /// - Parameters:
    ///   - folder: the path of the folder in which the file is made.
    ///   - process: the number of the process, unique in the run.
    /// - Throws: `POSIXError` if the file cannot be opened.
    package init(folder: String, process: Int) throws {
        file = open("\(folder)/process-\(process)", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        if file < 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        self.process = process
    }

    deinit { close(file) }

    /// Returns a number for the next operation or claim.
    package func nextOperation() -> Int { operations.add(1, ordering: .relaxed).newValue }

    /// The time of CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share.
    package static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Appends an event.
    ///
    /// - Precondition: the file can be written. A history with a hole would make the judge wrong.
    package func record(_ event: Event) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        guard var line = try? encoder.encode(event) else { preconditionFailure("cannot encode \(event)") }
        line.append(UInt8(ascii: "\n"))
        let written = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        precondition(written == line.count, "cannot record a history: a write was incomplete, errno \(errno)")
    }
}
