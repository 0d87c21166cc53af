import ChildProcesses
import Foundation

@testable import RedisDCTesting

/// Returns whether a process exists, including as a zombie.
func processExists(_ process: Int32) -> Bool {
    kill(process, 0) == 0
}

/// Waits until a condition holds, and returns false if it does not hold after two minutes.
func eventually(_ condition: () -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + .seconds(120)
    while !condition() {
        if ContinuousClock.now > deadline { return false }
        try? await Task.sleep(for: .milliseconds(2))
    }
    return true
}

/// Creates an executable shell script and returns its path.
///
/// Another process writes the file. A program cannot be started while a process has it open for
/// writing, and a child forked from this process at that moment would have it open.
func makeProgram(_ script: String, in folder: TemporaryFolder) async throws -> String {
    let path = folder.file("program")
    let maker = "printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1\" && chmod 755 \"$1\""
    let (status, output) = try await ChildProcess.run(["/bin/sh", "-c", maker, "maker", path, script])
    if status != 0 { throw LocalRedisError(.startFailed, output) }
    return path
}

/// Returns the ports of servers, to compare servers by.
func ports(_ servers: some Sequence<LocalRedis>) -> [Int] { servers.map { $0.port } }
