// An exchanger: parties meet, and each receives the values that all of them have brought.
import Hiredis

/// A meeting point where each party brings a value and receives the values of all.
///
/// ```swift
/// let deal = try coordinator.exchanger("deal", of: Card.self)
/// let met = try await deal.exchange(mine, timeout: .seconds(5))
/// let theirs = met.others[0]
/// ```
///
/// **Guarantees**
/// - Parties meet when enough of them with live sessions wait: all in one step, the longest waiting
///   first.
/// - A party that times out, is cancelled or dies before the meeting has met nobody, and nobody
///   receives its value.
/// - The values are kept until each party has fetched them or its session has ended: a party that
///   dies after the meeting takes nothing from the others.
///
/// **Limits**
/// - A session that is lost during the wait ends it with `.lost`: the party may have met the
///   others. The same is true after `.timedOut` or `.cancelled` with `mayHaveRun`, because Redis
///   did not answer.
/// - A value has at most 64 KiB as JSON, and a meeting at most 64 parties.
///
/// A ``Barrier`` does the same without values and costs less. A ``BoundedBuffer`` carries values
/// from producers that need not wait for a consumer.
public struct Exchanger<Value: Codable & Sendable>: Sendable {
    let resource: Resource
    let engine: Engine

    /// The name of the exchanger.
    public var name: String { resource.name }

    /// The result of an exchange for one party.
    public struct Meeting: Sendable {
        /// The generation of the meeting, and this party's place in it.
        public var arrival: Arrival
        /// The values of all parties, in the order of their arrival.
        public var values: [Value]

        /// The values of all other parties.
        public var others: [Value] {
            values.enumerated().filter { $0.offset != arrival.index }.map(\.element)
        }
    }

    /// Waits for the other parties and returns the values of all.
    ///
    /// - Parameters:
    ///   - value: at most 65,536 bytes as JSON.
    ///   - timeout: more than 0; `nil` waits without limit.
    /// - Throws: `.timedOut` or `.cancelled` (the party has met nobody, unless `mayHaveRun` is
    ///   set), `.lost`, `.destroyed`, `.conflict` (the exchanger has another number of parties),
    ///   `.invalidArgument` (the value is too large, or the timeout is 0 or negative), what
    ///   encoding or decoding a value throws, and what ``Coordinator`` lists for all operations.
    public func exchange(_ value: Value, timeout: Duration? = nil) async throws -> Meeting {
        let codec = JSONMessageCodec(Value.self)
        let bytes = try codec.encode(value)
        guard bytes.count <= Exchange.maxBytes else {
            throw RedisDCError(
                .invalidArgument,
                "cannot bring a value of \(bytes.count) bytes as JSON to exchanger \"\(name)\": "
                    + "expected at most \(Exchange.maxBytes)")
        }
        if timeout == .zero {
            throw RedisDCError(
                .invalidArgument, "cannot arrive at exchanger \"\(name)\": timeout is 0, expected more than 0")
        }
        let request = Acquire(
            resource: resource, action: .arrive, mode: .lease, failsOnLoss: true, detail: .brings(bytes))
        let grant = try await engine.obtain(request, timeout: timeout)
        // Redis keeps the values until all parties have released; this party needs them no longer, even if reading failed.
        defer { engine.releaseSoon(grant.claim) }
        let all = try await engine.read(grant.claim)
        guard !all.isEmpty else {
            throw RedisDCError(.lost, "the values of exchanger \"\(name)\" are gone: Redis has lost data")
        }
        return Meeting(arrival: Arrival(grant), values: try all.map { try codec.decode($0) })
    }

    /// Deletes the exchanger. All waiting parties throw `.destroyed`. The next arrival creates a
    /// new one.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `.conflict`, `.stopped`, `.connectionLost` with `mayHaveRun`, `.notConnected`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(Destroy(resource)) }
}

/// The limits of every ``Exchanger``.
public enum Exchange {
    /// The maximum size of a value as JSON: 64 KiB.
    public static let maxBytes = 65_536
    /// The maximum number of parties of a meeting: a process reads the values of all.
    public static let maxParties = 64
}

extension Coordinator {
    /// Returns an exchanger that all nodes share. All nodes must use the same number of parties.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - type: the type of the values.
    ///   - parties: the number of parties that meet, 2 to 64.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func exchanger<Value>(
        _ name: String, of type: Value.Type = Value.self, parties: Int = 2
    ) throws(RedisDCError) -> Exchanger<Value> {
        try ResourceName.validate(name)
        try checkArgument("parties", parties, in: 2...Exchange.maxParties, cannot: "make exchanger \"\(name)\"")
        let resource = Resource(name: name, kind: .exchanger, permits: parties, policy: "o")
        return Exchanger(resource: resource, engine: engine(of: name))
    }
}
