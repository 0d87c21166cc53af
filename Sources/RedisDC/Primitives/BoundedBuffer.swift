// Producers, consumers, and so many places between them.
import Hiredis

/// A queue of so many places: who puts waits for a free one, who takes waits for an item.
///
/// ```swift
/// let jobs = try coordinator.boundedBuffer("jobs", of: Job.self, capacity: 100)
/// try await jobs.put(job)                                   // producers
/// try await jobs.withItem { job in try await perform(job) } // consumers
/// ```
///
/// Places and items are two semaphores of the engine. A place is leased and becomes an item in one step; an item is leased
/// and becomes a free place in one step. So whoever dies in between has changed nothing.
///
/// **Guarantees**
/// - First in, first out; producers and consumers are served in the order in which they came.
/// - An item stays in its place, unseen by others, until the body of ``withItem(timeout:_:)`` has returned. When the body
///   throws, or the process dies (after the session's TTL), it is the first again.
/// - There are never more items, those in hand included, than places.
/// - A put or take that is cancelled or times out has put or taken nothing.
///
/// **Limits**
/// - An item is handled at least once: a consumer that dies after its work and before the end of the body leaves it to
///   another. What must happen once is guarded by the item's own id.
/// - A put whose session is lost under way throws `.connectionLost` with `mayHaveRun`: the item may be there.
public struct BoundedBuffer<Item: Codable & Sendable>: Sendable {
    let places: Resource
    let items: Resource
    let engine: Engine
    let coordinator: Coordinator

    public var name: String { places.name }

    /// Waits for a free place, and puts the item there.
    ///
    /// - Parameters:
    ///   - item: at most 1 MiB as JSON.
    ///   - timeout: from 1 ms; `nil` waits as long as it takes, 0 tries once.
    /// - Throws: `.timedOut`, `.cancelled`, `.lost`, `.destroyed`, `.conflict` (it has another capacity), `.stopped`,
    ///   `.connectionLost` with `mayHaveRun`, `.invalidArgument` (the item is too big), and what its coding throws.
    public func put(_ item: Item, timeout: Duration? = nil) async throws {
        let bytes = try JSONMessageCodec(Item.self).encode(item)
        guard bytes.count <= Buffer.maxBytes else {
            throw RedisDCError(
                .invalidArgument, "the item is \(bytes.count) bytes as JSON, expected at most \(Buffer.maxBytes)")
        }
        let place = try await engine.lease(AcquireRequest(resource: places, mode: .lease), timeout: timeout)
        try await place.pass(to: items, item: bytes)
    }

    /// Runs `body` with the first item, which is gone when it has returned and comes back when it throws.
    ///
    /// - Parameter timeout: how long to wait for an item; `nil` as long as it takes, 0 tries once.
    /// - Throws: what `body` throws; what ``put(_:timeout:)`` throws. An item that cannot be decoded stays, and its coding's
    ///   error is thrown: ``takeBytes(timeout:)`` takes it out.
    public func withItem<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Item) async throws -> Result
    ) async throws -> Result {
        try await withBytes(timeout: timeout) { try await body(JSONMessageCodec(Item.self).decode($0)) }
    }

    /// Takes the first item out for good.
    ///
    /// A process that dies in the moment when it gets the item may lose it. ``withItem(timeout:_:)`` does not.
    public func take(timeout: Duration? = nil) async throws -> Item {
        try await withItem(timeout: timeout) { $0 }
    }

    /// Takes the first item out for good, as it was put.
    public func takeBytes(timeout: Duration? = nil) async throws -> [UInt8] {
        try await withBytes(timeout: timeout) { $0 }
    }

    private func withBytes<Result: Sendable>(
        timeout: Duration?, _ body: @escaping @Sendable ([UInt8]) async throws -> Result
    ) async throws -> Result {
        let lease = try await engine.lease(AcquireRequest(resource: items, mode: .lease), timeout: timeout)
        let (engine, places) = (engine, places)
        return try await engine.holding(lease) { lease in
            guard let bytes = try await engine.read(lease.claim).first else {
                throw RedisDCError(.lost, "the items of \"\(places.name)\" are not there any more")
            }
            let result = try await body(bytes)
            try await lease.pass(to: places)
            return result
        }
    }

    /// How many items are there to be taken now, without those in hand.
    public var count: Int {
        get async throws(RedisDCError) { try await coordinator.inspect(items.name, limit: 1)?.available ?? 0 }
    }

    /// Deletes it and its items, and wakes everyone who waits with `.destroyed`. Items in hand are gone with their body.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool {
        let hadItems = try await engine.call(.destroy(items)) == 1
        return try await engine.call(.destroy(places)) == 1 || hadItems
    }
}

/// The limits of every ``BoundedBuffer``.
public enum Buffer {
    /// Most places.
    public static let maxCapacity = 10_000
    /// Most that an item may be, as JSON: 1 MiB.
    public static let maxBytes = 1 << 20
}

extension Coordinator {
    /// A bounded buffer that all nodes share. All must make it with the same capacity.
    ///
    /// - Parameter capacity: 1 to 10,000.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func boundedBuffer<Item>(
        _ name: String, of type: Item.Type = Item.self, capacity: Int
    ) throws(RedisDCError) -> BoundedBuffer<Item> {
        let items = "\(name)#items"
        try ResourceName.validate(name)
        try ResourceName.validate(items)
        guard (1...Buffer.maxCapacity).contains(capacity) else {
            throw RedisDCError(.invalidArgument, "capacity is \(capacity), expected 1 to \(Buffer.maxCapacity)")
        }
        return BoundedBuffer(
            places: Resource(name: name, kind: .boundedBuffer, permits: capacity),
            items: Resource(name: items, kind: .bufferItems, permits: 0), engine: engine(of: name), coordinator: self)
    }
}
