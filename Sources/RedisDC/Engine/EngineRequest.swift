// What the engine asks of Redis, and how it reads the answers. The scripts are in Scripts/engine_*.lua.
import Hiredis
import CoordinationBase

/// Who gets permits when several want them.
public enum Fairness: Sendable, Hashable {
    /// First come, first served. Nobody overtakes, however many permits the first one wants.
    case fifo
    /// Whoever asks while there are enough permits gets them, even if others wait: more throughput, and one who wants
    /// many at once may wait for ever.
    case barging
}

/// A resource that the engine counts permits of.
struct Resource: Sendable, Hashable {
    enum Kind: String, Sendable {
        case semaphore = "s"
        case mutex = "m"
        case readWriteLock = "r"
        case condition = "c"
        case turnstile = "t"
        case latch = "l"
        case barrier = "b"
        case phaser = "p"
        case exchanger = "e"
        /// Its free places, and its items.
        case boundedBuffer = "k"
        case bufferItems = "i"

        /// As people call it.
        var title: String {
            switch self {
            case .readWriteLock: "read-write lock"
            case .boundedBuffer: "bounded buffer"
            case .bufferItems: "bounded buffer's items"
            default: "\(self)"
            }
        }
    }

    var name: String
    var kind: Kind
    /// What it is made with when it is not there; `nil` wants it to be there.
    var permits: Int?
    /// A letter: see engine_head.lua.
    var policy: Unicode.Scalar = "f"

    /// As engine_resource.lua takes it.
    fileprivate var arguments: [RedisArgument] {
        [.string(kind.rawValue), permits.map { .integer($0) } ?? "", .string(String(policy))]
    }
}

/// What a caller waits for. A class, because several tables hold it for as long as that takes.
final class AcquireRequest: Sendable {
    enum Way: Sendable {
        case acquire
        /// At a barrier, phaser or exchanger.
        case arrive
        /// As one more party, with nothing to wait for.
        case register
    }

    let resource: Resource
    let way: Way
    let count: Int
    let mode: Mode
    let queues: Bool
    /// Before all who are not, and not behind them.
    let isPreferred: Bool
    /// A place in the queue that is lost with the session is not taken anew.
    let failsOnLoss: Bool
    /// One reference, because most have none.
    let detail: Detail?

    indirect enum Detail: Sendable {
        /// Those that hold one permit together.
        case group(String)
        /// What it has for the others at an exchanger.
        case brings([UInt8])
        /// A claim that is let go as soon as this one has its place in the queue, or more.
        case letsGo(UInt64)
    }

    init(
        resource: Resource, way: Way = .acquire, count: Int = 1, mode: Mode = .consume, queues: Bool = true,
        isPreferred: Bool = false, failsOnLoss: Bool = false, detail: Detail? = nil
    ) {
        (self.resource, self.way, self.count, self.mode, self.queues) = (resource, way, count, mode, queues)
        (self.isPreferred, self.failsOnLoss, self.detail) = (isPreferred, failsOnLoss, detail)
    }

    /// The same, if it is to be had without waiting.
    var once: AcquireRequest {
        AcquireRequest(
            resource: resource, way: way, count: count, mode: mode, queues: false, isPreferred: isPreferred,
            failsOnLoss: failsOnLoss, detail: detail)
    }
}

/// Whether permits are gone with the taking, or come back with the session at the latest.
enum Mode: Sendable {
    case consume, lease
    /// As one of a group that holds one permit together.
    case together
}

enum Operation: Sendable {
    case claim(AcquireRequest)
    /// Ends a claim, whatever has become of it: of this session, of a dead one, or, by force, of any.
    case release(name: String, claim: UInt64, owner: String? = nil, force: Bool = false)
    /// Takes a claim out of the queue, unless it has been granted.
    case leave(name: String, claim: UInt64)
    case signal(Resource, count: Int)
    case create(Resource)
    case resize(Resource, permits: Int)
    /// Opens a turnstile for all, or locks it.
    case gate(Resource, isOpen: Bool)
    /// Counts a latch down, once for each ID.
    case count(Resource, id: String?)
    /// Gives all but so many of a lease's permits back.
    case reduce(name: String, claim: UInt64, keep: Int)
    /// What a lease stands for: an item, or what all have brought.
    case read(name: String, claim: UInt64)
    /// Turns a lease of one resource into a permit of another.
    case pass(Resource, claim: UInt64, from: String, item: [UInt8]?)
    case give(name: String)
    case destroy(Resource)
    case heartbeat
    case reconcile(after: String)
}

struct EngineRequest: Sendable {
    var session: String
    var number: UInt64
    var settled: UInt64?
    var acknowledged: [UInt64] = []
    var operation: Operation

    static let reconcilePage = 1000

    var script: RedisScript {
        switch operation {
        case .claim(let request):
            switch request.way {
            case .acquire: Scripts.engineAcquire
            case .arrive: Scripts.engineArrive
            case .register: Scripts.engineRegister
            }
        case .release, .leave: Scripts.engineRelease
        case .signal: Scripts.engineSignal
        case .create: Scripts.engineCreate
        case .resize: Scripts.engineResize
        case .gate: Scripts.engineGate
        case .count: Scripts.engineCount
        case .reduce: Scripts.engineReduce
        case .read: Scripts.engineRead
        case .pass: Scripts.enginePass
        case .give: Scripts.engineGive
        case .destroy: Scripts.engineDestroy
        case .heartbeat: Scripts.engineHeartbeat
        case .reconcile: Scripts.engineReconcile
        }
    }

    /// Of the partition's keys, those that the script declares.
    var keyCount: Int { if case .heartbeat = operation { 3 } else { 2 } }

    func arguments(ttl: Duration) -> [RedisArgument] {
        let head: [RedisArgument] = [
            .string(session), .string(String(number)), settled.map { .string(String($0)) } ?? "",
            acknowledged.isEmpty ? "" : .string(acknowledged.map { String($0) }.joined(separator: ",")),
            .string(operation.name),
        ]
        switch operation {
        case .claim(let request):
            return head + request.resource.arguments + request.arguments
        case .release(_, let claim, let owner, let force):
            return head + [.string(String(claim)), .string(owner ?? ""), force ? "1" : "0"]
        case .leave(_, let claim): return head + [.string(String(claim)), "", "w"]
        case .read(_, let claim): return head + [.string(String(claim))]
        case .pass(let resource, let claim, let from, let item):
            return head + resource.arguments + [.string(String(claim)), .string(from)]
                + (item.map { [.bytes($0)] } ?? [])
        case .signal(let resource, let count): return head + resource.arguments + [.integer(count)]
        case .create(let resource): return head + resource.arguments
        case .resize(let resource, let permits): return head + resource.existing.arguments + [.integer(permits)]
        case .gate(let resource, let isOpen): return head + resource.arguments + [isOpen ? "1" : "0"]
        case .count(let resource, let id): return head + resource.arguments + [.string(id ?? "")]
        case .reduce(_, let claim, let keep): return head + [.string(String(claim)), .integer(keep)]
        case .destroy(let resource): return head + [.string(resource.kind.rawValue)]
        case .give: return head
        case .heartbeat: return head + [.integer(ttl.wholeMicroseconds)]
        case .reconcile(let after): return head + [.string(after), .integer(Self.reconcilePage)]
        }
    }
}

extension AcquireRequest {
    /// As engine_acquire.lua and engine_arrive.lua take it.
    fileprivate var arguments: [RedisArgument] {
        switch way {
        case .register: return []
        case .arrive:
            if case .brings(let bytes)? = detail { return [.bytes(bytes)] }
            return []
        case .acquire:
            let tail: [RedisArgument] = [.integer(count), mode.letter, queues ? "0" : "1"]
            if case .group(let group)? = detail { return tail + [isPreferred ? "0" : "1", .string(group)] }
            return tail + (isPreferred ? ["0"] : [])
        }
    }
}

extension Mode {
    fileprivate var letter: RedisArgument {
        switch self {
        case .consume: "c"
        case .lease: "l"
        case .together: "t"
        }
    }
}

extension Resource {
    /// The same, but it must be there.
    fileprivate var existing: Resource {
        var resource = self
        resource.permits = nil
        return resource
    }
}

extension Operation {
    /// What it is about; empty when it is about the session.
    var name: String {
        switch self {
        case .claim(let request): request.resource.name
        case .signal(let resource, _), .create(let resource), .resize(let resource, _), .gate(let resource, _),
            .count(let resource, _), .destroy(let resource):
            resource.name
        case .pass(let resource, _, _, _): resource.name
        case .release(let name, _, _, _), .leave(let name, _), .reduce(let name, _, _), .read(let name, _),
            .give(let name):
            name
        case .heartbeat, .reconcile: ""
        }
    }
}

/// What a script of the engine says.
enum EngineReply: Sendable {
    /// `value`: which arrival at a barrier it was, in which generation.
    case granted(fence: UInt64, value: UInt64 = 0)
    case queued
    /// Not enough permits now, and the request was not to queue.
    case none
    /// The claim had been ended before its request came.
    case over
    /// `count`: what the operation counts. `more`: waiters are left that may have what is free.
    case done(count: Int, more: Bool)
    case conflict(kind: String, permits: Int, policy: String)
    case missing
    case gone
    case broken
    /// The session is not there any more: its time is over, or else Redis has lost it.
    case lost(isOver: Bool)
    /// A request that has been answered long ago.
    case stale
    case heartbeat(grants: Int, claims: Int, Duties)
    case page(next: String, [Line])
    /// What a lease stands for.
    case values([[UInt8]])

    struct Line: Sendable {
        var number: UInt64
        var state: Character
        var fence: UInt64
        /// How many permits; of a grant at a barrier which arrival it was.
        var count: UInt64 = 1
        var name: String
    }

    /// What is left to do for all, for whoever comes by.
    struct Duties: Sendable {
        /// Claims of a session that has ended.
        var dead: (session: String, claims: [(number: UInt64, name: String)])?
        /// Resources whose waiters are to be looked at again.
        var names: [String]

        init(_ dead: [RESPValue], _ names: [RESPValue]) {
            self.names = names.compactMap(\.string)
            guard let session = dead.first?.string else { return }
            let claims = stride(from: 1, to: dead.count - 1, by: 2).compactMap {
                index -> (number: UInt64, name: String)? in
                guard let number = dead[index].number, let name = dead[index + 1].string else { return nil }
                return UInt64(exactly: number).map { ($0, name) }
            }
            self.dead = (session, claims)
        }
    }

    /// `nil`: no script of ours says such a resource.
    init?(_ reply: RESPValue, to operation: Operation) {
        guard let parts = reply.array, let word = parts.first?.string else { return nil }
        func number(_ index: Int) -> Int? { index < parts.count ? parts[index].number : nil }
        switch (word, operation) {
        case ("granted", _):
            guard let fence = number(1).flatMap({ UInt64(exactly: $0) }), let value = UInt64(exactly: number(2) ?? 0)
            else { return nil }
            self = .granted(fence: fence, value: value)
        case ("queued", _): self = .queued
        case ("none", _): self = .none
        case ("over", _): self = .over
        case ("missing", _): self = .missing
        case ("gone", _): self = .gone
        case ("broken", _): self = .broken
        case ("lost", _): self = .lost(isOver: parts.last?.string == "ended")
        case ("stale", _): self = .stale
        case ("ended", _):
            guard parts.count > 1, let state = parts[1].string else { return nil }
            self = .done(count: state == "d" ? 0 : 1, more: number(2) == 1)
        case ("conflict", _):
            guard parts.count == 4, let kind = parts[1].string, let permits = number(2), let policy = parts[3].string
            else { return nil }
            self = .conflict(kind: kind, permits: permits, policy: policy)
        case ("ok", .heartbeat):
            guard parts.count == 5, let grants = number(1), let claims = number(2), let dead = parts[3].array,
                let names = parts[4].array
            else { return nil }
            self = .heartbeat(grants: grants, claims: claims, Duties(dead, names))
        case ("ok", .reconcile):
            guard parts.count == 3, let next = parts[1].string, let cells = parts[2].array else { return nil }
            let lines = stride(from: 0, to: cells.count - 4, by: 5).compactMap { index -> Line? in
                func natural(_ place: Int) -> UInt64? { cells[index + place].number.flatMap { UInt64(exactly: $0) } }
                guard let number = natural(0), let state = cells[index + 1].string?.first, let fence = natural(2),
                    let count = natural(3), let name = cells[index + 4].string
                else { return nil }
                return Line(number: number, state: state, fence: fence, count: count, name: name)
            }
            guard lines.count == cells.count / 5 else { return nil }
            self = .page(next: next, lines)
        case ("ok", .read):
            guard let values = parts.last?.array else { return nil }
            self = .values(values.compactMap(\.bytes))
        case ("ok", .signal), ("ok", .resize), ("ok", .gate), ("ok", .give), ("ok", .pass):
            self = .done(count: 1, more: number(1) == 1)
        case ("ok", _):
            guard let count = number(1) else { return nil }
            self = .done(count: count, more: number(2) == 1)
        default: return nil
        }
    }
}

extension RESPValue {
    /// A number, however it was sent: a script's numbers would lose their digits beyond 2^53 as integers.
    var number: Int? { integer ?? string.flatMap { Int($0) } }
}
