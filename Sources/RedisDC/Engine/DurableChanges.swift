// Waits until replicas, or the disk, have what Redis has confirmed to this process.
//
// WAIT and WAITAOF count the writes of their own connection, and block it. A grant may have been written by the request of
// another process. So a write that changes nothing follows on a connection of its own: what the server has done before is
// durable when that write is. One such write serves all who wait at that moment.
import CoordinationBase
import Hiredis

/// A change in a slot that Redis has confirmed.
struct ConfirmedChange: Sendable {
    enum Kind: String {
        /// The claim of the request is a lease.
        case held = "h"
        /// The claim of the request has ended.
        case ended = "e"
        /// The request, or a later one, has written to the slot.
        case written = "w"
    }

    let session: String
    /// `nil`: nothing is known that the server could be asked for.
    let slot: Int?
    let number: UInt64
    let kind: Kind
}

/// Confirms that changes of one partition are durable, many at a time.
actor DurableChanges {
    private struct Waiter {
        let change: ConfirmedChange
        let end: Duration
        let timer: Task<Void, Never>
        let continuation: CheckedContinuation<RedisDCError?, Never>
        /// Why it was not confirmed so far.
        var reason: String?
    }

    /// The number of changes in one request; the script allows no more.
    private static let maxChanges = 64
    /// The number of connections for each durability. Whoever comes while all of them wait is served by the next request.
    private static let maxRounds = 4

    private let redis: any Redis
    private let keys: [String]
    private let clock: MonotonicClock
    /// The time limit of a confirmation, if the caller gives none.
    nonisolated let timeout: Duration
    private var lastID: UInt64 = 0
    private var waiters: [UInt64: Waiter] = [:]
    private var queues: [Durability: [UInt64]] = [:]
    private var rounds: [Durability: Int] = [:]
    private var supported: Set<Durability> = []

    init(redis: any Redis, keys: [String], clock: MonotonicClock, timeout: Duration) {
        (self.redis, self.keys, self.clock, self.timeout) = (redis, keys, clock, timeout)
    }

    /// Checks that the server can confirm a durability.
    ///
    /// - Throws: `.invalidArgument`, `.unsupported`, and failures of a request.
    func check(_ durability: Durability) async throws(RedisDCError) {
        if case .replicated(let count) = durability, !(1...1000).contains(count) {
            throw RedisDCError(.invalidArgument, "durability is .replicated(\(count)), expected 1 to 1,000 replicas")
        }
        if durability == .memory || supported.contains(durability) { return }
        let reason: String?
        do { reason = try await DurableScripts(redis: redis, durability: durability).reasonAgainst() } catch {
            throw RedisDCError(error)
        }
        if let reason { throw RedisDCError(.unsupported, reason) }
        supported.insert(durability)
    }

    /// Waits until a change is durable.
    ///
    /// - Parameter durability: not `.memory`.
    /// - Throws: `.notDurable` with the reason as its message, `.cancelled`, or the server's refusal.
    func confirm(
        _ change: ConfirmedChange, _ durability: Durability, within timeout: Duration
    ) async throws(RedisDCError) {
        lastID += 1
        let (id, end) = (lastID, clock.now() + timeout)
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<RedisDCError?, Never>) in
                if Task.isCancelled { return continuation.resume(returning: Engine.cancellation) }
                let timer = Task {
                    do { try await clock.sleep(timeout) } catch { return }
                    expire(id)
                }
                waiters[id] = Waiter(change: change, end: end, timer: timer, continuation: continuation)
                queues[durability, default: []].append(id)
                beginRound(durability)
            }
        } onCancel: {
            Task { await self.finish(id, Engine.cancellation) }
        }
        if let error { throw error }
    }

    private func finish(_ id: UInt64, _ error: RedisDCError?) {
        guard let waiter = waiters.removeValue(forKey: id) else { return }
        waiter.timer.cancel()
        waiter.continuation.resume(returning: error)
    }

    private func expire(_ id: UInt64) {
        let reason = waiters[id]?.reason ?? "Redis has not answered"
        finish(id, RedisDCError(.notDurable, reason, mayHaveRun: true))
    }

    // MARK: Rounds

    private func beginRound(_ durability: Durability) {
        guard rounds[durability, default: 0] < Self.maxRounds else { return }
        rounds[durability, default: 0] += 1
        // Not a child of the caller's task, whose cancellation must not end what other callers wait for.
        Task { await serve(durability) }
    }

    /// Confirms what is queued, until nothing is.
    private func serve(_ durability: Durability) async {
        while let ids = takeBatch(durability) {
            await carryOut(ids, durability)
            let rest = ids.filter { waiters[$0] != nil }
            guard !rest.isEmpty else { continue }
            // The server may be about to be replaced, or what it lacks is about to be repaired.
            try? await clock.sleep(.milliseconds(20))
            queues[durability, default: []].append(contentsOf: rest)
        }
        rounds[durability]! -= 1
    }

    /// Takes changes of one session from the queue.
    private func takeBatch(_ durability: Durability) -> [UInt64]? {
        let queue = queues[durability, default: []].filter { waiters[$0] != nil }
        let session = queue.first.flatMap { waiters[$0]?.change.session }
        let batch = queue.lazy.filter { self.waiters[$0]?.change.session == session }.prefix(Self.maxChanges)
        let taken = Set(batch)
        queues[durability] = queue.filter { !taken.contains($0) }
        return taken.isEmpty ? nil : taken.sorted()
    }

    private func carryOut(_ ids: [UInt64], _ durability: Durability) async {
        let batch = ids.compactMap { waiters[$0] }
        guard batch.count == ids.count, let session = batch.first?.change.session else { return }
        let end = batch.reduce(.zero) { max($0, $1.end) }
        var arguments: [RedisArgument] = [.string(session)]
        for change in batch.map(\.change) {
            arguments += [
                .string(change.slot.map { "\($0)" } ?? ""), .string("\(change.number)"), .string(change.kind.rawValue),
            ]
        }
        do {
            // A little less, so that the server's answer is there when the time is up.
            let limit = max(.milliseconds(1), (end - clock.now()) * 15 / 16)
            let (reply, confirmation) = try await DurableScripts(redis: redis, durability: durability).run(
                Scripts.touch, keys: keys, arguments: arguments, timeout: limit)
            received(reply, confirmation, ids)
        } catch {
            let error = RedisDCError(error)
            for id in ids {
                if error.isTransient { waiters[id]?.reason = error.message } else { finish(id, error) }
            }
        }
    }

    private func received(_ reply: RESPValue, _ confirmation: DurableScripts.Confirmation, _ ids: [UInt64]) {
        let parts = reply.array ?? []
        guard parts.first?.string == "ok", parts.count == ids.count + 1 else {
            for id in ids { waiters[id]?.reason = "the server does not know the session" }
            return
        }
        for (id, isThere) in zip(ids, parts.dropFirst()) {
            switch confirmation {
            case _ where isThere.integer != 1: waiters[id]?.reason = "the server has lost it"
            case .confirmed: finish(id, nil)
            case .missing(let count, let needed):
                waiters[id]?.reason = "only \(count) of \(needed) confirmations have arrived in time"
            case .refused(let reason): finish(id, RedisDCError(.notDurable, reason, mayHaveRun: true))
            }
        }
    }
}

extension Scripts {
    static let touch = RedisScript(embedded: PackageResources.touch_lua)
}
