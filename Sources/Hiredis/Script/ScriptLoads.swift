import NIOConcurrencyHelpers
import NIOCore

/// Loads scripts on one server: each once, however many callers need it.
///
/// A script is sent to the server with its whole source, so one load for each of thousands of callers
/// would fill the connection for seconds.
final class ScriptLoads: Sendable {
    /// The hash; `nil` when the user may run scripts but not load them.
    private typealias Continuation = CheckedContinuation<Result<String?, RedisError>, Never>

    private struct State {
        /// The callers that wait for a load in progress.
        var waiters: [ObjectIdentifier: [UInt64: Continuation]] = [:]
        /// For each script, the number of its last successful load.
        var loads: [ObjectIdentifier: UInt64] = [:]
        var lastLoad: UInt64 = 0
    }

    private static let maxRemembered = 1024
    private let state = NIOLockedValueBox(State())
    private let deadlines = DeadlineQueue()

    /// The number of the last load of a script, to be passed to `hash` when the server does not know the
    /// script.
    func last(of script: RedisScript) -> UInt64 {
        state.withLockedValue { $0.loads[ObjectIdentifier(script)] ?? 0 }
    }

    /// Returns the hash of a script when it has been loaded after the load `last`, by this caller or
    /// another.
    ///
    /// - Parameters:
    ///   - failure: why there is no connection, for the error.
    ///   - load: loads the script. It runs in a task of its own, because others wait for it too.
    /// - Throws: `.timedOut`, `.cancelled`, or the error of the load.
    func hash(
        of script: RedisScript, after last: UInt64, until deadline: NIODeadline, on eventLoop: any EventLoop,
        failure: @escaping @Sendable () -> RedisError?,
        load: @escaping @Sendable () async throws(RedisError) -> String?
    ) async throws(RedisError) -> String? {
        let (id, key) = (RedisConnection.makeID(), ObjectIdentifier(script))
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: Continuation) in
                deadlines.add(id, at: deadline, on: eventLoop) { self.end(id, key, Self.timedOut(failure())) }
                let action = join(id, script, continuation, after: last, until: deadline)
                switch action {
                case .wait: break
                case .load:
                    Task {
                        let result: Result<String?, RedisError>
                        do throws(RedisError) { result = .success(try await load()) } catch {
                            result = .failure(error)
                        }
                        loaded(script, result)
                    }
                case .resume(let result):
                    deadlines.cancel(id)
                    continuation.resume(returning: result ?? .failure(Self.timedOut(failure())))
                }
            }
        } onCancel: {
            end(id, key, RedisError(.cancelled, "the task was cancelled"))
        }
        return try result.get()
    }

    private enum Action {
        case wait, load
        /// With `nil` the time is over.
        case resume(Result<String?, RedisError>?)
    }

    private func join(
        _ id: UInt64, _ script: RedisScript, _ continuation: Continuation, after last: UInt64,
        until deadline: NIODeadline
    ) -> Action {
        let key = ObjectIdentifier(script)
        return state.withLockedValue { state in
            if Task.isCancelled { return .resume(.failure(RedisError(.cancelled, "the task was cancelled"))) }
            if state.loads[key] ?? 0 != last, let hash = script.hash { return .resume(.success(hash)) }
            // The deadline may have passed before there was a waiter.
            if NIODeadline.now() >= deadline { return .resume(nil) }
            defer { state.waiters[key, default: [:]][id] = continuation }
            return state.waiters[key] == nil ? .load : .wait
        }
    }

    /// Ends all waits for a load.
    private func loaded(_ script: RedisScript, _ result: Result<String?, RedisError>) {
        let waiters = state.withLockedValue { state in
            if case .success(let hash?) = result {
                script.hash = hash
                // The numbers increase, so one that is forgotten only costs a caller another round trip.
                if state.loads.count >= Self.maxRemembered { state.loads = [:] }
                state.lastLoad += 1
                state.loads[ObjectIdentifier(script)] = state.lastLoad
            }
            return state.waiters.removeValue(forKey: ObjectIdentifier(script)) ?? [:]
        }
        for (id, waiter) in waiters {
            deadlines.cancel(id)
            waiter.resume(returning: result)
        }
    }

    /// Ends the wait of one caller. The load continues.
    private func end(_ id: UInt64, _ key: ObjectIdentifier, _ error: RedisError) {
        guard let waiter = state.withLockedValue({ $0.waiters[key]?.removeValue(forKey: id) }) else { return }
        deadlines.cancel(id)
        waiter.resume(returning: .failure(error))
    }

    private static func timedOut(_ failure: RedisError?) -> RedisError {
        let reason = failure.map { ": \($0.message)" } ?? ""
        return RedisError(.timedOut, "the script was not loaded within the deadline\(reason)", underlying: failure)
    }
}
