// What a process remembers of confirmed requests, to compare it with the server of each new connection.
package import Hiredis

/// A log of confirmed requests.
package protocol ConfirmationLog: Sendable {
    /// Forgets what is older than its time.
    mutating func forgetOld(_ now: Duration)
}

/// Confirmed requests, and the calls that may add to them.
///
/// A confirmation reaches its call some time after its connection, and meanwhile a new connection may have been compared:
/// then it is in no comparison, and may be that of a server which is gone. Such a call is told so, and must ask again. To
/// remember a request before it is sent would repeat also what was refused.
package final class ConfirmationMemory<Log: ConfirmationLog>: Sendable {
    /// A call whose confirmation is to be remembered.
    package struct Call: Sendable {
        fileprivate let comparisonCount: Int
        package let began: Duration
    }

    private struct State {
        var log: Log
        /// Beginnings and ends of comparisons.
        var comparisonCount = 0
        var calls = 0
        /// The largest number of calls that were under way at once.
        var maxCalls = 0
        /// Whether the last comparison has put everything in order.
        var isInOrder = true
        var isRegistered = false
        var stop: (@Sendable () -> Void)?
    }

    /// So many confirmations may be repeated at once, in any order.
    package static var minNeeded: Int { 128 }

    private let redis: any EventLoopRedis
    private let key: String
    private let clock: MonotonicClock
    private let state: Locked<State>

    /// - Parameter key: in a cluster, new connections to the master of this key are compared.
    package init(_ log: Log, redis: any EventLoopRedis, key: String, clock: MonotonicClock) {
        (self.redis, self.key, self.clock) = (redis, key, clock)
        state = Locked(State(log: log))
    }

    deinit { state.withLock { $0.stop }?() }

    // MARK: Calls

    /// A call begins.
    ///
    /// - Parameters:
    ///   - repair: called with each new connection before the client gives it to anybody else; it calls ``compare(_:)``. It
    ///     must not keep its object alive.
    ///   - body: is called with the log as it is when the call begins.
    package func begin(
        repair: @escaping @Sendable (NewConnection) async -> Void, _ body: (Log) -> Void = { _ in }
    ) -> Call {
        let began = clock.now()
        return state.withLock { state in
            if !state.isRegistered {
                // Before the first request, so that no connection on which it may be confirmed is missed.
                state.isRegistered = true
                state.stop = redis.sendFirst(for: key, repair)
            }
            state.calls += 1
            state.maxCalls = max(state.maxCalls, state.calls)
            body(state.log)
            return Call(comparisonCount: state.comparisonCount, began: began)
        }
    }

    /// A call has ended.
    package func end() { state.withLock { $0.calls -= 1 } }

    /// Remembers what Redis has confirmed to a call.
    ///
    /// - Returns: `false` if a connection was compared since the call began: `body` was not called, and the request must be
    ///   repeated.
    package func confirm(_ call: Call, _ body: (inout Log, _ now: Duration) -> Void) -> Bool {
        let now = clock.now()
        return state.withLock { state in
            guard state.comparisonCount == call.comparisonCount else { return false }
            body(&state.log, now)
            return true
        }
    }

    /// Reads or changes the log.
    package func withLog<Result>(_ body: (inout Log) -> Result) -> Result { state.withLock { body(&$0.log) } }

    // MARK: Comparison

    /// Compares the log with the server of a new connection.
    ///
    /// - Parameter body: receives the log, and the number of confirmations in a row that a server must have to have all
    ///   earlier ones too: a server has a beginning of what was carried out, and the order of confirmations differs from that
    ///   by the calls under way at once. It returns whether the server has everything now, carried out in the order of the
    ///   log. After one that has not, the next comparison looks for the whole log: the server may have a later confirmation,
    ///   which was repeated, and lack an earlier one.
    package func compare(_ body: (_ log: Log, _ needed: Int) async -> Bool) async {
        let now = clock.now()
        let (log, needed) = state.withLock { state in
            state.comparisonCount += 1
            state.log.forgetOld(now)
            return (state.log, state.isInOrder ? max(state.maxCalls, Self.minNeeded) : .max)
        }
        let isInOrder = await body(log, needed)
        state.withLock { state in
            state.comparisonCount += 1
            state.isInOrder = isInOrder
        }
    }
}
