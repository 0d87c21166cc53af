import Foundation

/// The lines that a worker's parent process sends on standard input.
enum ParentInput {
    /// Waits for the next line and returns it. Exits when standard input ends.
    static func next() -> String {
        guard let line = readLine() else { exit(1) }
        return line
    }

    /// Exits when standard input ends, so that the worker never outlives its parent. No line can be read after this call.
    static func exitWithParent() {
        Thread.detachNewThread {
            while readLine() != nil {}
            exit(1)
        }
    }
}
