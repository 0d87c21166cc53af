// Some meet, and each gets what all have brought.
import Hiredis

/// A meeting point for so many, two as a rule, each of whom brings something and gets what all have brought.
///
/// ```swift
/// let deal = try coordinator.exchanger("deal", of: Card.self)
/// let met = try await deal.exchange(mine, timeout: .seconds(5))
/// let theirs = met.others[0]
/// ```
///
/// Without values it is a ``Barrier``, which costs less.
///
/// **Guarantees**
/// - They meet when so many wait whose sessions live: all of them in one step, those who have waited longest first.
/// - Who gives up (timeout, cancel) or dies before has met nobody, and nobody gets what it has brought.
/// - What all have brought is kept until each has fetched it or its session has ended: one that dies after the meeting takes
///   nothing from the others.
///
/// **Limits**
/// - A session that is lost while it waits ends the wait with `.lost`: it may have met the others. So may one that is told
///   `.timedOut` or `.cancelled` with `mayHaveRun`, because Redis did not answer.
public struct Exchanger<Value: Codable & Sendable>: Sendable {
    let resource: Resource
    let engine: Engine

    public var name: String { resource.name }

    /// What a party gets.
    public struct Meeting: Sendable {
        /// Which meeting, and which arrival in it.
        public var arrival: Arrival
        /// What all have brought, in the order of their arrival.
        public var values: [Value]

        /// What all but oneself have brought.
        public var others: [Value] {
            values.enumerated().filter { $0.offset != arrival.index }.map(\.element)
        }
    }

    /// Waits for the others, and gets what they have brought.
    ///
    /// - Parameters:
    ///   - value: at most 65,536 bytes as JSON.
    ///   - timeout: from 1 ms; `nil` waits as long as it takes.
    /// - Throws: `.timedOut`, `.cancelled` (then it has met nobody, unless `mayHaveRun`), `.lost`, `.destroyed`, `.conflict` (it
    ///   is for another number), `.stopped`, `.invalidArgument` (the value is too big). What the value's coding throws.
    public func exchange(_ value: Value, timeout: Duration? = nil) async throws -> Meeting {
        let codec = JSONMessageCodec(Value.self)
        let bytes = try codec.encode(value)
        guard bytes.count <= Exchange.maxBytes else {
            throw RedisDCError(
                .invalidArgument, "the value is \(bytes.count) bytes as JSON, expected at most \(Exchange.maxBytes)"
            )
        }
        if timeout == .zero {
            throw RedisDCError(.invalidArgument, "the timeout is 0: who does not wait does not meet anyone")
        }
        let request = AcquireRequest(
            resource: resource, way: .arrive, mode: .lease, failsOnLoss: true, detail: .brings(bytes))
        let operation = try engine.operation(request, timeout: timeout)
        await engine.carryOutAcquire(operation)
        guard let grant = try operation.grant() else { throw operation.notAvailable }
        // What has been fetched is not needed any more, whether anybody hears of that now or not.
        defer { engine.releaseSoon(grant.claim) }
        let all = try await engine.read(grant.claim)
        return Meeting(arrival: Arrival(grant), values: try all.map { try codec.decode($0) })
    }

    /// Deletes it, and wakes everyone who waits with `.destroyed`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(.destroy(resource)) == 1 }
}

/// The limits of every ``Exchanger``.
public enum Exchange {
    /// Most that one may bring, as JSON.
    public static let maxBytes = 65_536
    /// Most who meet at once: what all have brought is one reply.
    public static let maxParties = 64
}

extension Coordinator {
    /// A meeting point that all nodes share. All must make it for the same number.
    ///
    /// - Parameter parties: 2 to 64.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func exchanger<Value>(
        _ name: String, of type: Value.Type = Value.self, parties: Int = 2
    ) throws(RedisDCError) -> Exchanger<Value> {
        try ResourceName.validate(name)
        guard (2...Exchange.maxParties).contains(parties) else {
            throw RedisDCError(.invalidArgument, "parties is \(parties), expected 2 to \(Exchange.maxParties)")
        }
        let resource = Resource(name: name, kind: .exchanger, permits: parties, policy: "o")
        return Exchanger(resource: resource, engine: engine(of: name))
    }
}
