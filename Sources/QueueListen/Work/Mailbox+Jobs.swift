import CoordinationBase
import Hiredis

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A job of a mailbox, as operators see it.
public struct JobInfo: Sendable, Hashable {
    /// What a job does.
    public enum State: Sendable, Hashable {
        /// It waits for a worker, until its pause after a failure is over.
        case waiting
        /// A worker runs it.
        case running
        /// It has failed for good.
        case failed
    }

    /// Identifies the job among those of the mailbox: 16 characters.
    public let id: String
    /// The message.
    public let message: ReceivedMessage
    /// What it does.
    public let state: State
    /// How often it was taken by a worker.
    public let attempts: Int
    /// Why it has failed last; `nil` if it has not.
    public let reason: String?
    /// Since when it is in this state, by the clock of the Redis server.
    public let since: Date
    /// When it may be taken by a worker; `nil` if it does not wait.
    public let due: Date?
    /// Its order key, if it has one.
    public let orderKey: String?
}

/// The jobs of a mailbox in numbers.
public struct WorkStatus: Sendable, Hashable {
    /// How many jobs wait for a worker, also those whose pause after a failure is not over. Messages
    /// that no worker has taken yet are not among them: see ``Mailbox/inspect()``. Neither are jobs
    /// that wait for an earlier one with their order key.
    public let waiting: Int
    /// How many jobs run.
    public let running: Int
    /// How many jobs have failed for good.
    public let failed: Int
    /// Whether the workers are paused: see ``Mailbox/pauseWork()``.
    public let isPaused: Bool
}

extension Mailbox {
    /// Returns jobs of the mailbox's workers: see ``work(_:_:)``.
    ///
    /// Jobs that wait for an earlier one with their order key are not among them. The reply ends when it
    /// has 1 MiB of messages, but has one job at least.
    ///
    /// - Parameters:
    ///   - state: those that wait, the next one first; those that run; or those that have failed for
    ///     good, the latest one first.
    ///   - limit: the maximum number, 1 to 1,000.
    /// - Throws: `.invalidArgument`, and the codes of a failed request.
    public func jobs(_ state: JobInfo.State, limit: Int = 100) async throws(QueueListenError) -> [JobInfo] {
        let action = "list the jobs of"
        guard (1...1000).contains(limit) else {
            throw QueueListenError(.invalidArgument, "limit is \(limit), expected 1 to 1,000").prefixed(failure(action))
        }
        let kind =
            switch state {
            case .waiting: "0"
            case .running: "1"
            case .failed: "2"
            }
        let reply = try await runJobs(Scripts.listJobs, [.string(kind), .integer(limit)], action)
        guard let parts = reply.array, parts.count >= Self.statusParts, parts[0].string == "ok" else {
            throw refusal(reply, action)
        }
        return parts.dropFirst(Self.statusParts).compactMap { JobInfo($0, state) }
    }

    /// Returns how many jobs wait, run and have failed.
    ///
    /// - Throws: the codes of a failed request.
    public func workStatus() async throws(QueueListenError) -> WorkStatus {
        let action = "count the jobs of"
        let reply = try await runJobs(Scripts.listJobs, ["0", .integer(0)], action)
        guard let parts = reply.array, parts.count == Self.statusParts, parts[0].string == "ok",
            let waiting = parts[2].integer, let failed = parts[3].integer, let running = parts[4].integer,
            let isPaused = parts[5].integer
        else { throw refusal(reply, action) }
        return WorkStatus(waiting: waiting, running: running, failed: failed, isPaused: isPaused == 1)
    }

    /// Pauses the workers of the mailbox: they end the jobs that they run, and take no others, until
    /// ``resumeWork()``. Messages stay in the mailbox. The pause outlives all processes.
    ///
    /// - Throws: the codes of a failed request.
    public func pauseWork() async throws(QueueListenError) { try await pauseWork(true) }

    /// Lets the workers of the mailbox continue, within a second.
    ///
    /// - Throws: the codes of a failed request.
    public func resumeWork() async throws(QueueListenError) { try await pauseWork(false) }

    private func pauseWork(_ pauses: Bool) async throws(QueueListenError) {
        let action = pauses ? "pause the workers of" : "resume the workers of"
        let reply = try await runJobs(Scripts.pauseWork, [pauses ? "1" : "0"], action)
        guard reply.array?.first?.string == "ok" else { throw refusal(reply, action) }
    }

    /// The number of elements of a reply of `list_jobs` before the jobs.
    private static var statusParts: Int { 6 }

    /// Tries jobs again that have failed for good, as if they had never been tried.
    ///
    /// - Parameter ids: those of the jobs.
    /// - Returns: how many of them are tried again. The others have not failed, are not known any more, or
    ///   are tried again by an earlier attempt of this call, whose reply was lost.
    /// - Throws: `.invalidArgument`, and the codes of a failed request.
    @discardableResult
    public func retryJobs(_ ids: [String]) async throws(QueueListenError) -> Int {
        try await changeJobs(Scripts.retryJobs, ids, "retry jobs of")
    }

    /// Cancels jobs: they are not run any more. The handler of one that runs is cancelled within a third of
    /// the worker's ``WorkConfiguration/ttl``.
    ///
    /// - Parameter ids: those of the jobs.
    /// - Returns: how many of them are cancelled. The others are done, are not known, or were cancelled by an
    ///   earlier attempt of this call, whose reply was lost.
    /// - Throws: `.invalidArgument`, and the codes of a failed request.
    @discardableResult
    public func cancelJobs(_ ids: [String]) async throws(QueueListenError) -> Int {
        try await changeJobs(Scripts.cancelJobs, ids, "cancel jobs of")
    }

    private func changeJobs(
        _ script: RedisScript, _ ids: [String], _ action: String
    ) async throws(QueueListenError) -> Int {
        var tags: [RedisArgument] = []
        for id in ids {
            guard id.utf8.count == 16, let tag = UInt64(id, radix: 16) else {
                throw QueueListenError(.invalidArgument, "\"\(id)\" is not the id of a job, which has 16 characters")
                    .prefixed(failure(action))
            }
            var bytes = PackedBytes()
            bytes.uint64(tag)
            tags.append(.bytes(bytes.bytes))
        }
        var changed = 0
        for start in stride(from: 0, to: tags.count, by: 100) {
            let reply = try await runJobs(script, Array(tags[start..<min(start + 100, tags.count)]), action)
            let results = (reply.array ?? []).map(\.integer)
            guard !results.isEmpty, !results.contains(nil) else { throw refusal(reply, action) }
            changed += results.count { $0 != 0 }
        }
        return changed
    }

    /// Runs a script on the jobs of this mailbox, again after a lost reply.
    ///
    /// - Parameter action: the verb for error messages, "list the jobs of" for example.
    private func runJobs(
        _ script: RedisScript, _ arguments: [RedisArgument], _ action: String
    ) async throws(QueueListenError) -> RESPValue {
        let timeout = office.configuration.callTimeout
        let end = office.clock.now() + timeout
        do {
            return try await repeating(until: end, office.clock, throwing: QueueListenError.self) {
                try await office.redis.script(
                    script, keys: partition.keys.jobKeys(name), arguments: arguments, timeout: timeout / 2)
            }
        } catch { throw error.prefixed(failure(action)) }
    }
}

extension JobInfo {
    /// - Parameter reply: the tag, the record with the reason, the message, and a time.
    fileprivate init?(_ reply: RESPValue, _ state: State) {
        let (processSize, headSize) = (16, 27)
        guard let parts = reply.array, parts.count == 4, let tag = parts[0].bytes, let record = parts[1].bytes,
            let body = parts[2].bytes
        else { return nil }
        var reader = ByteReader(record)
        guard reader.bytes(1) != nil, let attempts = reader.integer(size: 2), reader.number() != nil,
            let since = reader.number(), reader.bytes(processSize) != nil,
            let head = reader.bytes(headSize), let stored = StoredMessage(head: Array(head), body: body),
            let keySize = reader.integer(size: 1),
            let key = reader.bytes(keySize)
        else { return nil }
        func date(_ milliseconds: Int) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
        id = UInt64(bigEndianBytes: tag)?.hexadecimal ?? ""
        message = ReceivedMessage(stored, epoch: 0)
        (self.state, self.attempts, self.since) = (state, attempts, date(since))
        reason = reader.rest.isEmpty ? nil : String(decoding: reader.rest, as: UTF8.self)
        // Those that may be taken at once have no time.
        due = state == .waiting ? parts[3].integer.map { date(max($0, since)) } : nil
        orderKey = key.isEmpty ? nil : String(decoding: key, as: UTF8.self)
    }
}
