import Foundation

/// Whether a process is there, be it as a zombie.
func processExists(_ process: Int32) -> Bool {
    kill(process, 0) == 0
}

/// Waits for something that another process does; false if it has not come true after ten seconds.
func eventually(_ condition: () -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(10)
    while !condition() {
        if ContinuousClock.now > deadline { return false }
        try? await Task.sleep(for: .milliseconds(2))
    }
    return true
}
