// A gate that admits waiters one by one, or all.
import Hiredis

/// A gate that is locked, open, or open for a number of passes.
///
/// ```swift
/// let gate = try coordinator.turnstile("start")
/// try await gate.pass(timeout: .seconds(30))   // on every node
/// try await gate.unlock()                      // on one: all pass, and so do all that come later
/// ```
///
/// It is a semaphore whose permits are passes.
///
/// **Guarantees**
/// - Waiters pass in the order in which they came.
/// - A wait that is cancelled or times out has used no pass. A pass whose process dies before it
///   has confirmed the receipt (milliseconds) is available again.
///
/// **Limits**
/// - Passes that were admitted and not used are gone when the gate is locked.
/// - A wait that has been granted its pass before the gate is locked, and is cancelled at that
///   moment, returns the pass afterwards: then one other wait passes. So does that of a process which
///   dies at that moment.
///
/// A ``Latch`` opens by itself after a number of events and cannot be locked again.
public struct Turnstile: Sendable {
    let resource: Resource
    let engine: Engine

    /// The name of the turnstile.
    public var name: String { resource.name }

    /// Passes, and waits for it if the gate is locked.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: `.timedOut`, `.cancelled`, `.destroyed`, `.conflict`, `.invalidArgument`, `.lost`,
    ///   `.notConnected`, and what ``Coordinator`` lists for all operations.
    public func pass(timeout: Duration? = nil) async throws(RedisDCError) {
        try await engine.obtain(Acquire(resource: resource), timeout: timeout)
    }

    /// Adds passes: for those that wait, in their order, then for those that come later.
    ///
    /// - Parameter count: 1 to 1,000,000.
    /// - Throws: `.connectionLost` with `mayHaveRun` when the session was lost while the request
    ///   was in flight, `.notConnected`, `.conflict`, `.destroyed`, `.cancelled`,
    ///   `.invalidArgument`, and what ``Coordinator`` lists for all operations.
    public func admit(_ count: Int = 1) async throws(RedisDCError) {
        try checkArgument("count", count, in: 1...Semaphore.maxPermits, cannot: "admit to turnstile \"\(name)\"")
        try await engine.call(Signal(resource, count: count))
    }

    /// Opens the gate: everyone passes until it is locked.
    ///
    /// - Throws: what ``admit(_:)`` throws.
    public func unlock() async throws(RedisDCError) {
        try await engine.call(SetTurnstile(turnstile: resource, isOpen: true))
    }

    /// Locks the gate: nobody passes, but for the case named under **Limits**. Unused passes are gone.
    ///
    /// - Throws: what ``admit(_:)`` throws.
    public func lock() async throws(RedisDCError) {
        try await engine.call(SetTurnstile(turnstile: resource, isOpen: false))
    }

    /// Deletes the turnstile. All waiters throw `.destroyed`. The next operation creates a new one.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `.conflict`, `.stopped`, `.connectionLost` with `mayHaveRun`, `.notConnected`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(Destroy(resource)) }
}

extension Coordinator {
    /// Returns a turnstile that all nodes share.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - preloaded: the number of passes that the turnstile is created with, 0 to 1,000,000.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func turnstile(_ name: String, preloaded: Int = 0) throws(RedisDCError) -> Turnstile {
        try ResourceName.validate(name)
        try checkArgument("preloaded", preloaded, in: 0...Semaphore.maxPermits, cannot: "make turnstile \"\(name)\"")
        return Turnstile(resource: Resource(name: name, kind: .turnstile, permits: preloaded), engine: engine(of: name))
    }
}

// MARK: Operations

/// Opens a turnstile for all, or locks it.
struct SetTurnstile: EngineOperation {
    typealias Value = Void

    let turnstile: Resource
    let isOpen: Bool

    var name: String { turnstile.name }
    var describedResource: Resource? { turnstile }
    var once: Once { .slot }
    var remedy: Remedy { .again }
    var arguments: [RedisArgument] { turnstile.arguments + [isOpen ? "1" : "0"] }

    func script(_ family: Family?) -> RedisScript { Scripts.setTurnstile }
}

extension Scripts {
    static let setTurnstile = RedisScript(embedded: PackageResources.set_turnstile_lua)
}
