import Foundation

@testable import RedisDCTesting

/// Whether a process is there, be it as a zombie.
func processExists(_ process: Int32) -> Bool {
    kill(process, 0) == 0
}

/// Waits for something that another process does; false if it has not come true after two minutes, which only a failure takes.
func eventually(_ condition: () -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(120)
    while !condition() {
        if ContinuousClock.now > deadline { return false }
        try? await Task.sleep(for: .milliseconds(2))
    }
    return true
}

/// Makes a shell script that can be started.
///
/// Another process writes it: a program cannot be started while anybody has it open for writing, and every child that
/// is being forked from this process meanwhile would.
func makeProgram(_ script: String, in folder: TemporaryFolder) async throws -> String {
    let path = folder.file("program")
    let maker = "printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1\" && chmod 755 \"$1\""
    let (status, output) = try await ChildProcess.run(["/bin/sh", "-c", maker, "maker", path, script])
    if status != 0 { throw LocalRedisError(.startFailed, output) }
    return path
}
