import Foundation

/// The lines that a worker's parent process sends on standard input.
enum ParentInput {
    /// Waits for the next line and returns it. Exits when standard input ends.
    static func next() -> String {
        guard let line = readLine() else { exit(1) }
        return line
    }

    /// Tells the parent that this process is ready, and returns the start and the end of the measurement.
    static func measurement() throws -> (start: Int64, end: Int64) {
        FileHandle.standardOutput.write(Data("ready\n".utf8))
        let times = next().split(separator: " ").compactMap { Int64($0) }
        exitWithParent()
        guard times.count == 2 else { throw BenchError("expected a start and an end") }
        return (times[0], times[1])
    }

    /// Exits when standard input ends, so that the worker never outlives its parent. No line can be read after this call.
    static func exitWithParent() {
        Thread.detachNewThread {
            while readLine() != nil {}
            exit(1)
        }
    }
}
