import CommandLineTool
import Foundation
import Synchronization

/// The nodes of a demo, one operating system process each.
final class NodeProcesses: Sendable {
    private let url: String
    private let run: String
    private let rounds: Int
    private let processes = Mutex<[Process]>([])

    init(url: String, run: String, rounds: Int) {
        self.url = url
        self.run = run
        self.rounds = rounds
    }

    /// Starts a process for each node.
    ///
    /// - Returns: the process ids.
    func start(_ parts: [[String]]) throws -> [Int32] {
        let tool = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let itself = Bundle.main.executableURL ?? tool
        let program = itself.deletingLastPathComponent().appendingPathComponent("rendezvous")
        guard FileManager.default.isExecutableFile(atPath: program.path) else {
            throw Failure(
                .unavailable,
                "cannot start the demo: the program rendezvous is not in the directory of redisdc; build it with `swift build --product rendezvous`"
            )
        }
        return try parts.map { part in
            let process = Process()
            process.executableURL = program
            process.arguments = part
            process.environment = ProcessInfo.processInfo.environment.merging(
                ["REDIS_URL": url, "RUN": run, "ROUNDS": "\(rounds)"]
            ) { $1 }
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            processes.withLock { $0.append(process) }
            return process.processIdentifier
        }
    }

    /// Waits for all nodes, and terminates the others when one fails or the task is cancelled.
    func untilAllHaveEnded() async throws {
        defer { processes.withLock { for process in $0 where process.isRunning { process.terminate() } } }
        while true {
            let (running, failed) = processes.withLock { all in
                (
                    all.contains { $0.isRunning },
                    all.first { !$0.isRunning && $0.terminationStatus != 0 }?.terminationStatus
                )
            }
            if let failed { throw Failure(.software, "a node failed with status \(failed)") }
            if !running { return }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
