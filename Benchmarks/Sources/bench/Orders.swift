import Foundation

/// What the process that started this one tells it, line by line.
enum Orders {
    /// Waits for the next line; without one the process ends.
    static func next() -> String {
        guard let line = readLine() else { exit(1) }
        return line
    }

    /// From now on no line is expected: the process ends with the one that started it.
    static func endWithParent() {
        Thread.detachNewThread {
            while readLine() != nil {}
            exit(1)
        }
    }
}
