// Fails a private deployment over, again and again.
import CommandLineTool
import Verification

/// Causes the failures of `redisdc verify --kill`: failovers, and processes that are killed and replaced.
struct FailureDriver: Sendable {
    /// How many operations succeed between two failovers, for each process.
    private static let operationsBetween = 20
    /// How long the processes may be without service after a failover has ended.
    private static let serviceLimit = Duration.seconds(60)

    let deployment: any LocalDeployment
    let recorder: Recorder
    let workers: WorkerProcesses
    let progress: Progress
    let seed: UInt64
    /// The number of failovers; `nil` for no limit.
    let limit: Int?
    let processes: Int

    /// Runs until the number of failovers is reached or the run is about to end.
    ///
    /// - Throws: a ``Failure`` if the processes are without service after a failover; `LocalRedisError`.
    func run() async throws {
        // Task numbers of the workers are lower.
        var choices = Choices(seed: seed, task: 1000)
        try await untilServed()
        for number in 1... {
            if progress.isOver || limit.map({ number > $0 }) == true { return }
            let begin = Recorder.now
            let kind = try await deployment.failOver(&choices)
            recorder.record(Event(.failover, at: begin, process: recorder.process, note: kind))
            recorder.record(Event(.healthy, at: Recorder.now, process: recorder.process))
            if number % 3 == 0 {
                let place = Int.random(in: 0..<processes, using: &choices)
                try await workers.replace(at: place) { process in
                    recorder.record(Event(.killed, at: Recorder.now, process: process))
                }
            }
            try await untilServed()
        }
    }

    private func untilServed() async throws {
        guard try await progress.wait(for: Self.operationsBetween * processes, within: Self.serviceLimit) else {
            throw Failure(
                .software, "the processes are without service \(Self.serviceLimit) after the deployment is healthy")
        }
    }
}
