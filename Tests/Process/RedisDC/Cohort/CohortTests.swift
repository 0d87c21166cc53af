import Foundation
import Hiredis
import TestSupport
import Testing
import Verification

@testable import RedisDC
@testable import RedisDCTestSupport
@testable import RedisDCTesting

extension PrimitiveTests {
    @Suite("Cohort", .serialized)
    struct CohortTests {
        @Test(
            "when a process is killed, its mutex is free, and the fences of its turns stay behind",
            arguments: [
                "cohort-linger", "cohort-turn",
            ])
        func killed(_ part: String) async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-part", server.url, "m", part])
                try await until("it has had its turns") { try await redis.send("LLEN", "log").integer ?? 0 >= 200 }
                let waiting = Task { try await node.mutex("m", locality: .cohort()).lock(timeout: .seconds(60)) }
                if part == "cohort-turn" {
                    try await until("it waits") { try await node.inspect("m")?.waiterCount == 1 }
                }
                try await victim.kill9()
                let lease = try await waiting.value
                let fences = try await redis.send("LRANGE", "log", 0, -1).array?.compactMap {
                    $0.string.flatMap(UInt64.init)
                }
                #expect(lease.fence > fences!.max()!)
                try await lease.release()
                try await until("its session is over") { try await Audit(redis).sessions.count == 1 }
                try await until("it is free") { try await Audit(redis).claims.isEmpty }
                try await Audit(redis).check()
            }
        }

        @Test(
            "a process that is stopped in a turn for longer than its TTL loses this turn, and its turns overlap no other's",
            arguments: [0, 1000])
        func stopped(waiting: Int) async throws {
            try await withRecords { records in
                try await withServer { server, redis, other in
                    try await withCoordinator(redis: redis, configuration: longTTL) { node in
                        let worker = try Child(
                            "redisdc-worker", ["engine-cohort", server.url, "m", records, "\(waiting + 1)"])
                        let recorder = try Recorder(folder: records, process: 2)
                        var tail = HistoryTail(folder: records)
                        let turn = try await stopInTurn(worker, &tail)
                        let called = Set(tail.events.filter { $0.kind == .call }.map(\.operation))
                        let begun = tail.events.filter { $0.kind == .enter || $0.kind == .failed }.map(\.operation)
                        #expect(called.subtracting(begun).count == waiting)

                        // The claim of the other process is granted when the session of the stopped one has ended.
                        let stopped = Recorder.now
                        let lease = try await node.mutex("m", locality: .cohort()).lock(timeout: patience)
                        recordHeld(lease, isFirst: true, called: stopped, recorder)
                        _ = try await other.send("SET", "go", "1")
                        let continued = Recorder.now
                        kill(worker.processID, SIGCONT)
                        try await until("the turn has ended") { tail.hasFailed(turn) }
                        recordHeld(lease, isFirst: false, called: stopped, recorder)
                        try await lease.release()
                        _ = try await worker.result()

                        _ = tail.read()
                        let verdict = Judge.judge(
                            RunHistory(.init(seed: 0, ttl: 2000, families: [.locks], isLossless: false), tail.events))
                        let text = Comment(rawValue: (verdict.violations + verdict.explained).joined(separator: "; "))
                        // Not even one that is announced.
                        let exclusion = try #require(verdict.promises.first { $0.promise == .exclusion })
                        #expect(exclusion.result == .held && exclusion.announced == 0, text)
                        #expect(verdict.promises.contains { $0.promise == .fences && $0.result == .held }, text)
                        let turns = tail.events.filter { $0.kind == .enter && $0.process == 1 && $0.time > continued }
                        // Those of the tasks that waited, and another one of the task that has lost its turn.
                        #expect(turns.count > waiting)
                        #expect(turns.allSatisfy { $0.fence! > lease.fence })
                        #expect(tail.events.contains { $0.kind == .enter && $0.process == 2 })
                    }
                }
            }
        }

        /// Stops the worker while one of its tasks has its turn and the others wait.
        ///
        /// - Returns: the number of the turn.
        private func stopInTurn(_ worker: Child, _ tail: inout HistoryTail) async throws -> Int {
            try await until("all tasks of the worker have queued") {
                tail.read().contains { $0.kind == .started }
            }
            var turn: Int?
            try await until("the worker is stopped in a turn") {
                kill(worker.processID, SIGSTOP)
                try await until("the worker is stopped") { ProcessState.isStopped(worker.processID) }
                _ = tail.read()
                // A turn that a busy machine has lost before is over.
                turn = tail.events.last { $0.kind == .enter }?.operation.flatMap { tail.hasFailed($0) ? nil : $0 }
                if turn == nil { kill(worker.processID, SIGCONT) }
                return turn != nil
            }
            return try #require(turn)
        }

        /// Records that this process holds the mutex, if it does.
        private func recordHeld(_ lease: Lease, isFirst: Bool, called: UInt64, _ recorder: Recorder) {
            let time = Recorder.now
            guard lease.isHeld else { return }
            if isFirst {
                recorder.record(
                    Event(
                        .enter, at: time, process: recorder.process, lease.name, operation: 1, verb: .lock,
                        called: called, fence: lease.fence, count: 1, limit: 1, note: Event.turn))
            } else {
                recorder.record(Event(.held, at: time, process: recorder.process, operation: 1))
            }
        }

        private func withRecords(_ body: (String) async throws -> Void) async throws {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("turns-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            try await body(folder.path)
        }
    }
}

extension HistoryTail {
    /// Returns whether the worker has recorded that one of its turns was lost.
    fileprivate mutating func hasFailed(_ turn: Int) -> Bool {
        _ = read()
        return events.contains { $0.process == 1 && $0.kind == .failed && $0.operation == turn && $0.note == "lost" }
    }
}
