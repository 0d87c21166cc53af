// A process of `redisdc verify`.
import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis
import QueueListen
import RedisDC
import Synchronization
import Verification

/// The hidden command `redisdc verify-worker`, which `redisdc verify` runs several times.
///
/// It performs random operations and records them, until a line arrives on its standard input. When the input ends
/// without one, its parent has died, and it exits at once.
struct VerifyWorker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify-worker", abstract: "A process of redisdc verify.", shouldDisplay: false)
    @OptionGroup var global: GlobalOptions
    @Option var namespace: String
    @Option var partitions: Int
    /// The number of the process, unique in the run.
    @Option var process: Int
    /// The place of the process among those that run at the same time.
    @Option var slot: Int
    @Option var parties: Int
    @Option var seed: UInt64
    @Option var ttl: Int
    /// The folder of the run's records.
    @Option var history: String
    @Option var families: String
    @Option var replicated: Int?
    @Option var defect: String?

    func run() async throws {
        let recorder = try Recorder(folder: history, process: process)
        let stop = StopSignal()
        stop.listen()
        let families = Set(families.split(separator: ",").compactMap { Family(rawValue: String($0)) })
        try await withRedisClient(try global.configuration()) { redis in
            let coordinating = Workload.coordinatorConfiguration(ttl: ttl, partitions: partitions)
            try await withCoordinator(redis: redis, namespace: namespace, configuration: coordinating) { coordinator in
                let posting = Workload.postOfficeConfiguration(partitions: partitions)
                try await withPostOffice(redis: redis, namespace: namespace, configuration: posting) { office in
                    let work = Work(
                        coordinator: coordinator, office: office, recorder: recorder, stop: stop,
                        slot: slot, parties: parties,
                        durability: replicated.map { .replicated($0) } ?? .memory,
                        defect: defect.flatMap { Defect(rawValue: $0) })
                    recorder.record(Event(.started, at: Recorder.now, process: process))
                    precondition(defect != Defect.crashes.rawValue, "the run has asked for a crash")
                    await work.run(families, seed: seed)
                }
            }
        }
    }
}

/// Whether the process has to end.
final class StopSignal: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .acquiring) }

    /// Waits for a line on standard input, on a thread of its own. Exits the process when there is none.
    func listen() {
        Thread.detachNewThread { [self] in
            guard readLine() != nil else { _exit(1) }
            flag.store(true, ordering: .releasing)
            // The parent ends the process by closing the pipe, should it take too long.
            while readLine() != nil {}
            _exit(1)
        }
    }
}

/// The concurrent tasks of one process.
struct Work: Sendable {
    let coordinator: Coordinator
    let office: PostOffice
    let recorder: Recorder
    let stop: StopSignal
    let slot: Int
    /// The parties of each barrier.
    let parties: Int
    /// That of leases.
    let durability: Durability
    let defect: Defect?

    /// Performs operations until the process is asked to end.
    func run(_ families: Set<Family>, seed: UInt64) async {
        let notices = Task {
            for await event in coordinator.events() {
                switch event {
                case .dataLost: recorder.record(Event(.dataLost, at: Recorder.now, process: recorder.process))
                case .repaired(let operations):
                    recorder.record(
                        Event(.repaired, at: Recorder.now, process: recorder.process, note: "\(operations)"))
                case .sessionLost(_, let reason):
                    recorder.record(
                        Event(
                            .sessionLost, at: Recorder.now, process: recorder.process,
                            note: reason == .dataLost ? "dataLost" : "expired"))
                default: break
                }
            }
        }
        let reading = families.contains(.mail) ? Task { await MailWork(work: self).read() } : nil
        await withTaskGroup(of: Void.self) { group in
            func add(_ family: Family, tasks: Range<Int>, _ step: @escaping @Sendable (inout Choices) async -> Void) {
                guard families.contains(family) else { return }
                for task in tasks {
                    group.addTask {
                        var choices = Choices(seed: seed, task: task)
                        while !stop.isSet {
                            await step(&choices)
                            try? await Task.sleep(for: choices.milliseconds(0...120))
                        }
                    }
                }
            }
            add(.locks, tasks: 0..<3) { await LockWork(work: self).step(&$0) }
            add(.semaphores, tasks: 3..<5) { await SemaphoreWork(work: self).lease(&$0) }
            add(.semaphores, tasks: 5..<7) { await SemaphoreWork(work: self).consume(&$0) }
            add(.barriers, tasks: 7..<8) { await BarrierWork(work: self).step(&$0) }
            add(.mail, tasks: 8..<9) { await MailWork(work: self).send(&$0) }
        }
        if families.contains(.mail) { await MailWork(work: self).sendLast() }
        reading?.cancel()
        await reading?.value
        notices.cancel()
    }

    /// Records that an operation has failed, if Redis is the reason.
    func failed(_ error: any Error) {
        let note: String
        switch error {
        case let error as RedisDCError:
            if [.timedOut, .cancelled].contains(error.code), !error.mayHaveRun { return }
            note = "\(error.code)"
        case let error as QueueListenError: note = "\(error.code)"
        default: note = "\(error)"
        }
        recorder.record(Event(.failed, at: Recorder.now, process: recorder.process, note: note))
    }

    /// Records the beginning of an operation, and returns its number.
    func begin(
        _ verb: Event.Verb, _ resource: String?, count: Int = 1, limit: Int? = nil, message: String? = nil,
        recipients: [String]? = nil
    ) -> Int {
        let operation = recorder.nextOperation()
        recorder.record(
            Event(
                .call, at: Recorder.now, process: recorder.process, resource, operation: operation, verb: verb,
                count: count, limit: limit, message: message, recipients: recipients))
        return operation
    }

    /// Records the end of an operation.
    func end(_ operation: Int, _ outcome: Event.Outcome, generation: UInt64? = nil, index: Int? = nil) {
        recorder.record(
            Event(
                .end, at: Recorder.now, process: recorder.process, operation: operation, outcome: outcome,
                generation: generation, index: index))
    }
}
