// A queue of limited capacity between producers and consumers.
import Hiredis

/// A queue of fixed capacity: producers wait for a free place, consumers wait for an item.
///
/// ```swift
/// let jobs = try coordinator.boundedBuffer("jobs", of: Job.self, capacity: 100)
/// try await jobs.put(job)                                   // producers
/// try await jobs.withItem { job in try await perform(job) } // consumers
/// ```
///
/// Places and items are two semaphores. A leased place becomes an item in one step, and a leased
/// item becomes a free place in one step, so a process that dies in between has changed nothing.
///
/// **Guarantees**
/// - First in, first out. Producers and consumers are each served in the order in which they came.
/// - An item stays in its place, invisible to other consumers, until the body of
///   ``withItem(timeout:retryDelay:_:)`` has returned. When the body throws (after the retry delay),
///   is cancelled, or its process dies (after the session's TTL), the item is the first again.
/// - An item whose body fails again and again is retried after each delay. The items behind it are
///   not held up.
/// - There are never more items, including those that bodies hold, than places.
/// - A put or take that is cancelled or times out has put or taken nothing. `.full` and `.empty` say
///   that the buffer was the reason, `.timedOut` that Redis did not answer in time.
/// - A put with an id has one effect, however often and from whichever process it is repeated, also
///   when its item has been taken since. The buffer remembers the last ``Buffer/maxPutIDs`` ids, for
///   ``Buffer/putIDLifetime`` after the last put with an id.
///
/// **Limits**
/// - An item is handled at least once: a consumer that dies after its work and before its body
///   returns leaves the item to another. Work that must happen once is guarded by an id in the
///   item.
/// - A put whose session is lost while its request is in flight throws `.connectionLost` with
///   `mayHaveRun`: the item may have been put. With an id it can be repeated safely.
/// - An item that a body holds takes its place until the body has returned. So a put into the same
///   full buffer from the body's own task would wait for itself: without a timeout it throws
///   `.full`. Put after the body, or put with a timeout to wait for other consumers.
///
/// A ``Semaphore`` with `signal` and `wait` coordinates producers and consumers without carrying
/// items; an ``Exchanger`` hands values over among parties that wait at the same time.
public struct BoundedBuffer<Item: Codable & Sendable>: Sendable {
    let places: Resource
    let items: Resource
    let engine: Engine
    let coordinator: Coordinator

    /// The name of the buffer.
    public var name: String { places.name }

    /// Waits for a free place and puts the item there.
    ///
    /// A put whose id the buffer remembers puts nothing and returns, also when the buffer is full.
    /// One that waits already when another process puts the item with this id returns when it gets a
    /// place, or throws `.full`.
    ///
    /// - Parameters:
    ///   - item: at most 1 MiB as JSON. A repetition is not compared with the item that was put.
    ///   - id: identifies the put, so that it can be repeated safely; 1 to 512 bytes of UTF-8 without
    ///     control characters or braces. `nil` puts an item with every call.
    ///   - timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: `.full` at the end of the timeout, and without a timeout in a body that holds an
    ///   item of the full buffer; `.timedOut` when Redis did not answer in time; `.cancelled`,
    ///   `.lost`, `.destroyed`, `.conflict` (the buffer has another capacity), `.connectionLost`
    ///   with `mayHaveRun`, `.notConnected`,
    ///   `.invalidArgument` (the item is too large), what encoding the item throws, and what
    ///   ``Coordinator`` lists for all operations.
    public func put(_ item: Item, id: String? = nil, timeout: Duration? = nil) async throws {
        if let id { try ResourceName.validate(id) }
        let bytes = try JSONMessageCodec(Item.self).encode(item)
        guard bytes.count <= Buffer.maxBytes else {
            throw RedisDCError(
                .invalidArgument,
                "cannot put an item of \(bytes.count) bytes as JSON into bounded buffer \"\(name)\": "
                    + "expected at most \(Buffer.maxBytes)")
        }
        let place = try await place(timeout, for: id)
        try await place?.pass(to: items, item: bytes, id: id)
    }

    /// - Returns: `nil` when the item with this id was put before.
    private func place(_ timeout: Duration?, for id: String?) async throws(RedisDCError) -> Lease? {
        let holdsItem = timeout == nil && LeaseOwnership.lease(on: items.name, of: engine) != nil
        let request = Acquire(resource: places, mode: .lease, detail: id.map { .puts(id: $0) })
        do {
            return try await engine.leasePlace(request, timeout: holdsItem ? .zero : timeout)
        } catch {
            guard holdsItem, error.code == .full else { throw error }
            throw RedisDCError(
                .full,
                error.message + ", and this task holds one of its items, whose place is free when the body of "
                    + "withItem has returned: put after it, or pass a timeout to wait for other consumers")
        }
    }

    /// Runs `body` with the first item, and removes the item when `body` returns. When `body`
    /// throws, the item is the first again after `retryDelay`.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// session is lost; then another consumer gets the item, without a delay.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for an item; `nil` waits without limit, 0 tries once.
    ///   - retryDelay: how long an item whose body has thrown stays invisible, 0 or more. The call
    ///     throws immediately, and the caller may take the next item meanwhile. A shutdown of the
    ///     coordinator ends the delay.
    ///   - body: receives the item.
    /// - Throws: what `body` throws; `.empty` at the end of the timeout, and otherwise what
    ///   ``put(_:id:timeout:)`` throws. An item that cannot be decoded stays, without a delay, and the
    ///   decoding error is thrown: ``takeBytes(timeout:)`` removes it.
    public func withItem<Result>(
        timeout: Duration? = nil, retryDelay: Duration = .seconds(1), _ body: (Item) async throws -> Result
    ) async throws -> Result {
        guard retryDelay >= .zero else {
            throw RedisDCError(
                .invalidArgument,
                "cannot take an item from bounded buffer \"\(name)\": retryDelay is \(retryDelay), expected 0 or more")
        }
        return try await withBytes(timeout: timeout) { bytes, failures in
            let item = try JSONMessageCodec(Item.self).decode(bytes)
            do {
                return try await body(item)
            } catch {
                failures.retryDelay = retryDelay
                throw error
            }
        }
    }

    /// Removes and returns the first item.
    ///
    /// A process that dies at the moment when it receives the item may lose it.
    /// ``withItem(timeout:retryDelay:_:)`` does not.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: what ``withItem(timeout:retryDelay:_:)`` throws.
    public func take(timeout: Duration? = nil) async throws -> Item {
        try await withItem(timeout: timeout) { $0 }
    }

    /// Removes and returns the first item as the JSON that was put.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: what ``take(timeout:)`` throws, except decoding errors.
    public func takeBytes(timeout: Duration? = nil) async throws -> [UInt8] {
        try await withBytes(timeout: timeout) { bytes, _ in bytes }
    }

    /// The treatment of an item whose body has failed.
    private struct Failures {
        var retryDelay = Duration.zero
    }

    private func withBytes<Result>(
        timeout: Duration?, _ body: ([UInt8], inout Failures) async throws -> Result
    ) async throws -> Result {
        let lease = try await engine.lease(Acquire(resource: items, mode: .lease), timeout: timeout)
        var failures = Failures()
        let result = try await lease.resultWhileHeld(isOwnedByTask: true) { lease in
            guard let bytes = try await engine.read(lease.ownClaim()).first else {
                throw RedisDCError(.lost, "the item of bounded buffer \"\(name)\" is gone: the buffer was destroyed")
            }
            let result = try await body(bytes, &failures)
            // The capacity may have changed since the consumer's handle was made.
            do { try await lease.pass(to: places.existing) } catch let error as RedisDCError
                where error.code == .notFound
            {
                throw RedisDCError(.destroyed, error.message)
            }
            return result
        }
        if failures.retryDelay > .zero, !Task.isCancelled, lease.isHeld {
            lease.releaseLater(after: failures.retryDelay)
        } else {
            try await lease.release()
        }
        return try result.get()
    }

    /// Changes the capacity. Items stay, also when there are more than places now: then puts wait
    /// until enough of them have been taken.
    ///
    /// Handles that were made with the capacity at creation or with the current one continue to
    /// work. Puts of all others throw `.conflict`; consumers work with any capacity.
    ///
    /// - Parameter capacity: 1 to 10,000.
    /// - Throws: `.invalidArgument`, `.notFound` (nothing was put yet), `.conflict`, `.stopped`,
    ///   `.connectionLost` with `mayHaveRun`, `.notConnected`.
    public func resize(to capacity: Int) async throws(RedisDCError) {
        try Buffer.check(capacity, "resize", name)
        try await engine.call(Resize(places, permits: capacity))
    }

    /// The number of items that can be taken now, without those that bodies hold.
    ///
    /// - Throws: what ``Coordinator/inspect(_:limit:)`` throws.
    public var count: Int {
        get async throws(RedisDCError) { try await coordinator.inspect(items.name, limit: 1)?.available ?? 0 }
    }

    /// Deletes the buffer and its items. All waiters throw `.destroyed`. An item that a body holds
    /// is gone when the body ends.
    ///
    /// - Returns: whether there was a buffer.
    /// - Throws: `.conflict`, `.stopped`, `.connectionLost` with `mayHaveRun`, `.notConnected`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool {
        let existed = try await engine.call(Destroy(places))
        // The script has destroyed the items too. This refuses those who wait for them, now and not with the next heartbeat.
        try await engine.call(Recheck(name: items.name))
        return existed
    }
}

/// The limits of every ``BoundedBuffer``.
public enum Buffer {
    /// The maximum capacity.
    public static let maxCapacity = 10_000
    /// The maximum size of an item as JSON: 1 MiB.
    public static let maxBytes = 1 << 20
    /// The number of ids of puts that a buffer remembers. Same as MAX_PUT_IDS of records.lua.
    public static let maxPutIDs = 10_000
    /// How long a buffer remembers ids after the last put with an id: one hour. Same as
    /// PUT_ID_LIFETIME of records.lua.
    public static let putIDLifetime = Duration.seconds(3600)

    /// The end of the name of the resource for a buffer's items.
    static let itemsSuffix = "#items"

    static func check(_ capacity: Int, _ action: String, _ name: String) throws(RedisDCError) {
        try checkArgument("capacity", capacity, in: 1...maxCapacity, cannot: "\(action) bounded buffer \"\(name)\"")
    }
}

extension Coordinator {
    /// Returns a bounded buffer that all nodes share. All nodes must use the same capacity.
    ///
    /// - Parameters:
    ///   - name: 1 to 506 bytes of UTF-8 without control characters or braces.
    ///   - type: the type of the items.
    ///   - capacity: the number of places, 1 to 10,000.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func boundedBuffer<Item>(
        _ name: String, of type: Item.Type = Item.self, capacity: Int
    ) throws(RedisDCError) -> BoundedBuffer<Item> {
        let items = name + Buffer.itemsSuffix
        try ResourceName.validate(name)
        try ResourceName.validate(items)
        try Buffer.check(capacity, "make", name)
        return BoundedBuffer(
            places: Resource(name: name, kind: .boundedBuffer, permits: capacity),
            items: Resource(name: items, kind: .bufferItems, permits: 0), engine: engine(of: name), coordinator: self)
    }
}

// MARK: Operations

/// Turns a lease of one resource into a permit of another: a place of a buffer into an item, or an item into a place.
struct Pass: EngineOperation {
    /// Whether the lease has ended. False if the item with this id was put before; then the lease is still held.
    typealias Value = Bool

    let held: HeldClaim
    let target: Resource
    /// The item that fills the place.
    let item: [UInt8]?
    /// The id of a put that takes effect once.
    let id: String?

    var name: String { target.name }
    var describedResource: Resource? { target }
    var once: Once { .claim(held.number, isEnded: true) }
    var remedy: Remedy { .again }
    var payloadBytes: Int { item?.count ?? 0 }
    var keys: ScriptKeys { id == nil ? .all : .putIDs(buffer: held.name) }
    var arguments: [RedisArgument] {
        target.arguments + [.string(String(held.number)), .string("t:" + held.name)]
            + (item.map { [.bytes($0)] } ?? []) + (id.map { [.string($0)] } ?? [])
    }

    func script(_ family: Family?) -> RedisScript { id == nil ? Scripts.pass : Scripts.passOnce }

    static func value(of reply: EngineReply) -> Bool? {
        switch reply {
        case .done: true
        case .known: false
        default: nil
        }
    }
}

extension Scripts {
    static let pass = RedisScript(embedded: PackageResources.pass_lua)
    /// For a put with an id.
    static let passOnce = RedisScript(embedded: PackageResources.pass_once_lua)
}
