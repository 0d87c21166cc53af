// One run of `redisdc verify`: starts the processes, watches them, and collects the history.
import CommandLineTool
import CoordinationBase
import Foundation
import Hiredis
import QueueListen
import RedisDC
import Synchronization
import Verification

/// The history of a run, and what the user should know about it besides the verdict.
struct RunOutcome: Sendable {
    var history: RunHistory
    var notes: [String] = []
    /// Why the run has ended early.
    var failure: (any Error)?
}

/// Whether the user has interrupted the run.
final class Interruption: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .acquiring) }
    func set() { flag.store(true, ordering: .releasing) }
}

/// One run.
struct VerifyRun: Sendable {
    let options: GlobalOptions
    let header: RunHistory.Header
    /// The private deployment that this run fails over; `nil` for the user's.
    let deployment: (any LocalDeployment)?
    let interruption: Interruption
    let processes: Int
    let partitions: Int
    let ttl: Int
    let length: Duration?
    let failovers: Int?
    /// The number of replicas that must have a lease before it counts; `nil` for none.
    let replicated: Int?
    /// The words of the command that takes the place of the processes; `nil` for those of this program.
    let rival: [String]?
    let defect: Defect?

    /// How long the processes may take to end.
    private static let stopLimit = Duration.seconds(40)

    /// Runs, removes the keys, and returns the history.
    func make() async throws -> RunOutcome {
        let namespace = "verify-\(randomID().prefix(12))"
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("redisdc-\(namespace)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var outcome: RunOutcome?
        try await options.withRedis { redis in
            let result: Result<RunOutcome, any Error>
            do { result = .success(try await make(redis, namespace, folder)) } catch { result = .failure(error) }
            let remaining = await Cleanup(redis: redis, namespace: namespace, partitions: partitions).run()
            outcome = try result.get()
            if let remaining { outcome!.notes.append(remaining) }
        }
        return outcome!
    }

    private func make(_ redis: RedisClient, _ namespace: String, _ folder: URL) async throws -> RunOutcome {
        let recorder = try Recorder(folder: folder.path, process: 0)
        let coordinating = Workload.coordinatorConfiguration(ttl: ttl, partitions: partitions)
        let posting = Workload.postOfficeConfiguration(partitions: partitions)
        return try await withCoordinator(redis: redis, namespace: namespace, configuration: coordinating) { engine in
            try await withPostOffice(redis: redis, namespace: namespace, configuration: posting) { office in
                try await registerReaders(office)
                let workers = WorkerProcesses(
                    rival: rival, arguments(namespace, folder), environment: environment)
                var watch = RunWatch(folder: folder.path, showsText: !options.json)
                var notes: [String] = []
                var failure: (any Error)?
                do {
                    for slot in 0..<processes { try await workers.start(slot: slot) }
                    (notes, failure) = try await work(redis, recorder, workers, &watch)
                } catch {
                    await workers.killAll()
                    throw error
                }
                let crash = await workers.stopAll(within: Self.stopLimit) { killed($0, recorder) }
                failure = failure ?? crash
                watch.read()
                let readings = FinalReadings(
                    coordinator: engine, office: office, recorder: recorder,
                    families: rival == nil ? Set(header.families) : [],
                    processes: processes, ttl: ttl, partitions: partitions)
                do { try await readings.read(tokens: watch.tokens) } catch {
                    notes.append("the state after the run could not be read: \(error)")
                }
                watch.read()
                watch.finish()
                return RunOutcome(history: RunHistory(header, watch.events), notes: notes, failure: failure)
            }
        }
    }

    /// A device receives what is sent after its first read.
    private func registerReaders(_ office: PostOffice) async throws {
        guard header.families.contains(.mail) else { return }
        for slot in 0..<processes {
            _ = try await office.mailbox(Workload.mailbox(ofSlot: slot)).listen(
                device: Workload.device(ofSlot: slot), timeout: .zero)
        }
    }

    // MARK: Processes

    private func arguments(_ namespace: String, _ folder: URL) -> [String] {
        var arguments = ["--namespace", namespace, "--partitions", "\(partitions)"]
        arguments += ["--seed", "\(header.seed)", "--ttl", "\(ttl)", "--parties", "\(min(3, processes))"]
        arguments += ["--history", folder.path, "--families", header.families.map(\.rawValue).joined(separator: ",")]
        if let replicated { arguments += ["--replicated", "\(replicated)"] }
        if let defect { arguments += ["--defect", defect.rawValue] }
        if let cacert = options.cacert { arguments += ["--cacert", cacert] }
        return arguments
    }

    /// The URL is in the environment, because a list of processes shows the arguments.
    private var environment: [String: String] { options.chosenURL.map { ["REDIS_URL": $0] } ?? [:] }

    private func killed(_ process: Int, _ recorder: Recorder) {
        recorder.record(Event(.killed, at: Recorder.now, process: process))
    }

    // MARK: Work

    /// Watches the processes until the time or the failovers are over.
    ///
    /// - Returns: notes for the user, and the error that has ended the work early.
    private func work(
        _ redis: RedisClient, _ recorder: Recorder, _ workers: WorkerProcesses, _ watch: inout RunWatch
    ) async throws -> ([String], (any Error)?) {
        let failures: Task<Void, any Error>
        var notes: [String] = []
        var failure: (any Error)?
        let progress = watch.progress
        let isDone = Interruption()
        if let deployment {
            let driver = FailureDriver(
                deployment: deployment, recorder: recorder, workers: workers, progress: progress, seed: header.seed,
                limit: failovers, processes: processes)
            failures = Task {
                defer { isDone.set() }
                try await driver.run()
            }
        } else {
            let watching = FailoverWatch(redis: redis, recorder: recorder)
            if await !watching.isPermitted() { notes.append("the user may not use INFO: failovers are not counted") }
            failures = Task { await watching.run() }
        }
        // The time of the run begins when all processes work. On a busy machine they need seconds to start.
        var end: ContinuousClock.Instant?
        while !interruption.isSet, !isDone.isSet, end.map({ .now < $0 }) ?? true {
            try await Task.sleep(for: .milliseconds(250))
            watch.read()
            if end == nil, watch.started.count >= processes { end = length.map { .now + $0 } }
            watch.show()
            failure = await workers.failure
            if failure != nil { break }
        }
        // A failover that has begun is brought to its end, unless the user does not want to wait.
        if deployment == nil || interruption.isSet { failures.cancel() }
        progress.stop()
        if case .failure(let error) = await failures.result, failure == nil, !(error is CancellationError) {
            failure = error
        }
        if interruption.isSet { throw RedisDCError(.cancelled, "interrupted") }
        return (notes, failure)
    }
}
