// What tests of workers share.
import CoordinationBase
import Foundation
import Hiredis
import TestSupport

@testable import QueueListen

/// What a handler throws.
struct JobFailure: Error {}

/// Settings of workers with short pauses, that keep their jobs on a busy machine.
func quickWork(_ concurrency: Int = 8, ttl: Duration = .seconds(20)) -> WorkConfiguration {
    var configuration = WorkConfiguration()
    configuration.concurrency = concurrency
    configuration.ttl = ttl
    configuration.pause = .milliseconds(20)...(.milliseconds(100))
    configuration.grace = .seconds(10)
    return configuration
}

/// Settings of post offices for a busy machine.
func patientOffice() -> PostOfficeConfiguration {
    var configuration = PostOfficeConfiguration()
    configuration.callTimeout = patience
    return configuration
}

/// What workers have done.
final class JobLog: Sendable {
    private struct State {
        var runs: [String: Int] = [:]
        var running: Set<String> = []
        var order: [String: [Int]] = [:]
        var most = 0
        var overlaps: [String] = []
    }
    private let state = Locked(State())

    /// Runs a job, whose text is "KEY NUMBER".
    func run(_ job: Job, _ body: () async throws -> Void) async throws {
        let key = job.orderKey ?? job.message.text
        state.withLock { state in
            if !state.running.insert(key).inserted { state.overlaps.append(job.message.text) }
            state.most = max(state.most, state.running.count)
        }
        defer { state.withLock { _ = $0.running.remove(key) } }
        try await body()
        state.withLock { state in
            state.runs[job.message.text, default: 0] += 1
            state.order[key, default: []].append(Int(job.message.text.split(separator: " ").last ?? "") ?? -1)
        }
    }

    var done: Int { state.withLock { $0.runs.count } }
    var runs: [String: Int] { state.withLock { $0.runs } }
    var order: [String: [Int]] { state.withLock { $0.order } }
    var overlaps: [String] { state.withLock { $0.overlaps } }
    var most: Int { state.withLock { $0.most } }
}

/// Whether the mailbox has neither messages nor jobs.
func isWithoutJobs(_ office: PostOffice, _ name: String) async throws -> Bool {
    let keys = office.partitions[office.keyspace.partition(of: name)].keys
    let messages = try await office.mailbox(name).inspect()?.count ?? 0
    let fields = try await office.redis.send("HKEYS", .string(keys.work(name))).array ?? []
    return messages == 0
        && !fields.contains {
            ["j:", "m:", "o:"].contains(String(decoding: ($0.bytes ?? []).prefix(2), as: UTF8.self))
        }
}
