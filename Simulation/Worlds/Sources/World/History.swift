// The history of a run, in the form that `redisdc verify --replay` judges: docs/verify.md describes its lines.
@testable import RedisDC

/// A record of the operations of all processes and of the losses that were reported to them, as the processes of
/// `redisdc verify` write it.
///
/// So a second judge, which has no access to the world, sees the same run. Recorded are locks, permits, and barriers with
/// a fixed number of parties. The tool's own type of a line is internal to its package.
public struct History {
    /// A line of the history after the first one.
    public struct Line: Encodable {
        var time: UInt64
        var process: Int
        var kind: String
        var resource: String?
        var operation: Int?
        var verb: String?
        var called: UInt64?
        var fence: UInt64?
        var count: Int?
        var limit: Int?
        var outcome: String?
        var generation: UInt64?
        var index: Int?
        var note: String?

        private enum CodingKeys: String, CodingKey {
            case time = "t"
            case process = "p"
            case kind = "e"
            case resource = "r"
            case operation = "o"
            case verb = "v"
            case called = "c"
            case fence = "f"
            case count = "n"
            case limit = "l"
            case outcome = "x"
            case generation = "g"
            case index = "i"
            case note = "w"
        }
    }

    /// The first line.
    public struct Header: Encodable {
        let format = "redisdc verify"
        let version = 1
        var seed: UInt64
        var ttl: Int
        var families: [String]
        var isLossless: Bool
    }

    public private(set) var lines: [Line] = []
    private var lastOperation = 0
    private var locks: Set<String> = []

    /// Adds a line, with its time and process.
    mutating func add(_ kind: String, _ process: SimulatedProcess, _ details: (inout Line) -> Void = { _ in }) {
        // 0 is the process that starts the others.
        var line = Line(time: Self.time(process.world.now), process: process.number + 1, kind: kind)
        details(&line)
        lines.append(line)
    }

    private static func time(_ now: Time) -> UInt64 { UInt64(now) * 1000 }

    // MARK: Leases

    /// A process has a lease.
    ///
    /// - Returns: the number of the claim, or `nil` for a kind of lease that is not recorded.
    mutating func enters(
        _ request: Acquire, _ room: Judge.Room, fence: UInt64, called: Time, _ process: SimulatedProcess
    ) -> Int? {
        guard [.mutex, .semaphore, .readWriteLock].contains(request.resource.kind), room.group == nil else {
            return nil
        }
        lastOperation += 1
        locks.insert(room.name)
        let (operation, isPermit) = (lastOperation, request.resource.kind == .semaphore)
        add("enter", process) {
            ($0.resource, $0.operation, $0.verb) = (room.name, operation, isPermit ? "lease" : "lock")
            ($0.called, $0.fence, $0.count, $0.limit) = (Self.time(called), fence, room.size, room.capacity)
        }
        return operation
    }

    /// A process has read that it holds a lease (`held`), or learns of its loss (`lost`).
    mutating func lease(_ operation: Int?, is state: String, _ process: SimulatedProcess) {
        if let operation { add(state, process) { $0.operation = operation } }
    }

    // MARK: Operations

    /// An operation begins.
    ///
    /// - Returns: its number.
    mutating func begins(
        _ verb: String, _ name: String, count: Int? = nil, parties: Int? = nil, _ process: SimulatedProcess
    ) -> Int {
        lastOperation += 1
        let operation = lastOperation
        add("call", process) {
            ($0.resource, $0.operation, $0.verb, $0.count, $0.limit) = (name, operation, verb, count, parties)
        }
        return operation
    }

    /// An operation ends: with effect, without, or nobody knows.
    mutating func ends(
        _ operation: Int?, _ outcome: String, _ arrival: Arrival? = nil, _ process: SimulatedProcess
    ) {
        guard let operation else { return }
        add("end", process) {
            ($0.operation, $0.outcome) = (operation, outcome)
            ($0.generation, $0.index) = (arrival.map { UInt64($0.generation) }, arrival?.index)
        }
    }

    /// The server was replaced by another one.
    mutating func failedOver(_ now: Time) {
        lines.append(Line(time: Self.time(now), process: 0, kind: "failover", note: "promotion"))
    }

    // MARK: The end

    /// Adds what is left on the server when all processes have ended.
    mutating func close(_ ledger: Ledger, permits: [String: Int], _ now: Time) {
        for name in locks.sorted() {
            var line = Line(time: Self.time(now), process: 0, kind: "free")
            (line.resource, line.outcome) = (name, ledger.claims.values.contains { $0.name == name } ? "none" : "ok")
            lines.append(line)
        }
        for (name, created) in permits.sorted(by: { $0.key < $1.key }) {
            var line = Line(time: Self.time(now), process: 0, kind: "value")
            (line.resource, line.limit) = (name, created)
            line.count = ledger.resources[name]?.free ?? created
            lines.append(line)
        }
    }
}

extension SimulatedTask.Finish {
    /// The outcome of an operation, as a history names it.
    var outcome: String { error == nil ? (isNotAvailable ? "none" : "ok") : isUnknown ? "unknown" : "none" }

    private var isNotAvailable: Bool { if case .success(.notAvailable) = self { true } else { false } }
}
