// What a process remembers of its confirmed requests, in case a failover loses them.
import DequeModule

/// What a process does when Redis has lost a confirmed operation.
enum Remedy: Sendable {
    /// Nothing is missed.
    case none
    /// It repeats the request.
    case again
    /// It consumes the permits again, before others get them.
    case consumeAgain
    /// It reports the loss.
    case report
}

/// A confirmed request, which Redis may lose.
struct ConfirmedEffect: Sendable {
    var request: EngineRequest
    let at: Duration
    /// The effects of the process are counted.
    let count: UInt64
    /// Whether a repetition under its number may still arrive.
    var mayComeLate = false

    var slot: Int { request.slot ?? 0 }
}

/// The latest confirmed requests of a process, in the order of their confirmations.
struct ConfirmedEffects: Sendable {
    private(set) var effects: Deque<ConfirmedEffect> = []
    /// The last one that was forgotten. If Redis has it, it has the earlier ones too.
    private(set) var lastForgotten: ConfirmedEffect?
    /// The number of effects so far.
    private(set) var count: UInt64 = 0
    private var bytes = 0
    /// Some of the latest operations, each in the place that follows from its name and from whether it waits.
    private var operations = [(any EngineOperation)?](repeating: nil, count: 64)
    private let time: Duration
    private let maxBytes: Int

    /// - Parameter time: how long an effect is remembered.
    init(time: Duration, maxBytes: Int) { (self.time, self.maxBytes) = (time, maxBytes) }

    mutating func append(_ request: EngineRequest, at now: Duration) {
        count += 1
        var request = request
        share(&request.operation)
        let effect = ConfirmedEffect(request: request, at: now, count: count)
        effects.append(effect)
        bytes += Self.size(effect)
        forgetOld(now)
    }

    /// Replaces an operation by an equal one that is remembered, so that what is remembered of a program which does the same
    /// again and again stays in the processor's caches.
    private mutating func share(_ operation: inout any EngineOperation) {
        let place = (operation.name.hashValue &+ (operation is Acquire ? 1 : 0)) & (operations.count - 1)
        if let other = operations[place], operation.isEqual(to: other) {
            operation = other
        } else if operation.isEqual(to: operation) {
            operations[place] = operation
        }
    }

    /// Forgets what is older than the time, and what exceeds the bytes.
    mutating func forgetOld(_ now: Duration) {
        while let first = effects.first, bytes > maxBytes || first.at + time < now {
            effects.removeFirst()
            bytes -= Self.size(first)
            lastForgotten = first
        }
    }

    /// Removes the effects of these requests.
    mutating func remove(_ numbers: Set<UInt64>) {
        if numbers.isEmpty { return }
        effects.removeAll { numbers.contains($0.request.number) }
        bytes = effects.reduce(0) { $0 + Self.size($1) }
    }

    /// Records that a repetition of a request has no reply yet.
    mutating func maybeComesLate(_ number: UInt64) {
        guard let index = effects.firstIndex(where: { $0.request.number == number }) else { return }
        effects[index].mayComeLate = true
    }

    /// Removes all effects, and returns them.
    mutating func takeAll() -> [ConfirmedEffect] {
        defer { self = ConfirmedEffects(time: time, maxBytes: maxBytes) }
        return Array(effects)
    }

    /// The bytes that an effect counts: those of the application, and the records of the client.
    private static func size(_ effect: ConfirmedEffect) -> Int { 320 + effect.request.operation.payloadBytes }
}
