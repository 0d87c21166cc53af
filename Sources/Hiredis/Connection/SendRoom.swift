import DequeModule
import NIOConcurrencyHelpers
import NIOCore
import Synchronization

/// Bounds the commands that wait to be sent on a connection, by their bytes.
///
/// A caller that finds no room waits until the socket has accepted earlier commands: first come,
/// first served, until its deadline. A command that is larger than the limit is admitted when
/// nothing else waits to be sent, so about twice the limit may be in memory.
final class SendRoom: Sendable {
    /// The bytes that a command counts beside its own: the client's records of it.
    static let overhead = 256

    private struct Waiter {
        var size: Int
        var continuation: UnsafeContinuation<RedisError?, Never>
    }

    private struct State {
        var waiters: [UInt64: Waiter] = [:]
        /// The order of the waiters. Those that have left may still be in it.
        var queue: Deque<UInt64> = []
        var closed: RedisError?
    }

    let limit: Int
    private let taken = Atomic<Int>(0)
    private let hasWaiters = Atomic<Bool>(false)
    private let state = NIOLockedValueBox(State())
    private let deadlines = DeadlineQueue()

    init(limit: Int) { self.limit = limit }

    /// The bytes that wait to be sent now.
    var takenBytes: Int { taken.load(ordering: .relaxed) }

    /// For tests: the number of callers that wait.
    var waiterCount: Int { state.withLockedValue { $0.waiters.count } }

    /// Takes room for a command, unless there is none or others wait for it.
    func take(_ size: Int) -> Bool {
        if hasWaiters.load(ordering: .sequentiallyConsistent) { return false }
        if taken.add(size, ordering: .sequentiallyConsistent).oldValue < limit { return true }
        give(size)
        return false
    }

    /// Takes room for a command that must not wait.
    func takeAnyway(_ size: Int) { taken.add(size, ordering: .sequentiallyConsistent) }

    /// Gives room back when the socket has accepted a command, or it was refused.
    func give(_ size: Int) {
        taken.subtract(size, ordering: .sequentiallyConsistent)
        if hasWaiters.load(ordering: .sequentiallyConsistent) { admit() }
    }

    /// Waits until there is room, and takes it.
    ///
    /// - Returns: the time that is left of `timeout`.
    /// - Throws: `.timedOut`, `.cancelled`, or the reason for the end of the connection.
    func wait(_ size: Int, timeout: TimeAmount?, _ eventLoop: any EventLoop) async throws(RedisError) -> TimeAmount? {
        let id = RedisConnection.makeID()
        let deadline = timeout.map { NIODeadline.now() + $0 }
        let error = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                if let deadline { deadlines.add(id, at: deadline, on: eventLoop) { self.end(id, self.timedOut) } }
                let now: RedisError? = state.withLockedValue { state in
                    if let error = state.closed { return error }
                    if Task.isCancelled { return Self.cancelled }
                    // The deadline may have passed before there was a waiter.
                    if let deadline, NIODeadline.now() >= deadline { return timedOut }
                    state.waiters[id] = Waiter(size: size, continuation: continuation)
                    state.queue.append(id)
                    hasWaiters.store(true, ordering: .sequentiallyConsistent)
                    return nil
                }
                if let now {
                    deadlines.cancel(id)
                    continuation.resume(returning: now)
                } else {
                    // Room that was given back before `hasWaiters` was set.
                    admit()
                }
            }
        } onCancel: {
            end(id, Self.cancelled)
        }
        if let error { throw error }
        return deadline.map { max(.nanoseconds(0), $0 - .now()) }
    }

    private static var cancelled: RedisError { RedisError(.cancelled, "the task was cancelled") }

    private var timedOut: RedisError {
        RedisError(
            .timedOut,
            "the command was not sent within the deadline, because \(takenBytes) bytes wait to be sent; "
                + "send less at a time, or raise maxUnsentBytes")
    }

    /// Ends a wait without room.
    private func end(_ id: UInt64, _ error: RedisError) {
        guard let waiter = state.withLockedValue({ $0.waiters.removeValue(forKey: id) }) else { return }
        deadlines.cancel(id)
        waiter.continuation.resume(returning: error)
        // It may have been the one that the others wait behind.
        admit()
    }

    /// Gives room to the waiters, as far as there is some.
    private func admit() {
        let admitted = state.withLockedValue { state in
            var admitted: [(id: UInt64, waiter: Waiter)] = []
            while let first = state.queue.first {
                guard let waiter = state.waiters[first] else {
                    state.queue.removeFirst()
                    continue
                }
                if taken.load(ordering: .sequentiallyConsistent) >= limit { break }
                taken.add(waiter.size, ordering: .sequentiallyConsistent)
                state.queue.removeFirst()
                state.waiters[first] = nil
                admitted.append((first, waiter))
            }
            if state.queue.isEmpty { hasWaiters.store(false, ordering: .sequentiallyConsistent) }
            return admitted
        }
        for (id, waiter) in admitted {
            deadlines.cancel(id)
            waiter.continuation.resume(returning: nil)
        }
    }

    /// Ends all waits, and every later one.
    func close(_ error: RedisError) {
        let waiters = state.withLockedValue { state in
            state.closed = state.closed ?? error
            defer { (state.waiters, state.queue) = ([:], []) }
            return state.waiters
        }
        for (id, waiter) in waiters {
            deadlines.cancel(id)
            waiter.continuation.resume(returning: error)
        }
    }
}
