// The replies of the engine's scripts.
import Hiredis

/// A reply of one of the engine's scripts.
enum EngineReply: Sendable {
    /// `value`: the generation of a barrier or phaser and the arrival's index in it, as 1024 * generation + index.
    case granted(fence: UInt64, value: UInt64 = 0)
    case queued
    /// There are not enough permits now, and the request was not to queue.
    case none
    /// The claim had ended before its request arrived.
    case over
    /// `count`: what the operation counts. `more`: waiters are left that may be granted what is free.
    case done(count: Int, more: Bool)
    case conflict(kind: String, permits: Int, policy: String)
    case missing
    case gone
    case broken
    /// The session does not exist any more: it has expired, or else Redis has lost its data.
    case lost(isExpired: Bool)
    /// The request was answered long ago, and the answer is forgotten.
    case stale
    case heartbeat(grants: Int, claims: Int, Duties)
    case page(next: String, [Line])
    /// What a lease stands for.
    case values([[UInt8]])

    /// One claim of the session, in a page of a reconciliation.
    struct Line: Sendable {
        enum State: Sendable {
            case waiting, granted, held

            /// A letter that no script writes counts as waiting: such a claim exists, and nothing is held by it.
            init(letter: Character) {
                switch letter {
                case "g": self = .granted
                case "h": self = .held
                default: self = .waiting
                }
            }
        }
        var number: UInt64
        var state: State
        var fence: UInt64
        /// The number of permits; for a grant at a barrier its generation and index, as in ``granted(fence:value:)``.
        var count: UInt64 = 1
        var name: String
    }

    /// Work for the whole partition, which any session can do.
    struct Duties: Sendable {
        /// Claims of a session that has ended, to be released.
        var dead: (session: String, claims: [(number: UInt64, name: String)])?
        /// Resources with waiters that may be granted something.
        var names: [String]
    }
}

// MARK: Decoding

extension EngineReply {
    /// `nil` when none of the engine's scripts replies so.
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
        case ("lost", _): self = .lost(isExpired: parts.last?.string == "ended")
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
            self = .heartbeat(grants: grants, claims: claims, Duties(dead: dead, names: names))
        case ("ok", .reconcile):
            guard parts.count == 3, let next = parts[1].string, let cells = parts[2].array,
                let lines = Self.lines(cells)
            else { return nil }
            self = .page(next: next, lines)
        case ("ok", .read):
            guard let values = parts.last?.array else { return nil }
            self = .values(values.compactMap(\.bytes))
        case ("ok", .signal), ("ok", .resize), ("ok", .setTurnstile), ("ok", .give), ("ok", .pass):
            self = .done(count: 1, more: number(1) == 1)
        case ("ok", _):
            guard let count = number(1) else { return nil }
            self = .done(count: count, more: number(2) == 1)
        default: return nil
        }
    }

    /// Five cells each: number, state, fence, count, name. `nil` when one of them is not so.
    private static func lines(_ cells: [RESPValue]) -> [Line]? {
        let lines = stride(from: 0, to: cells.count - 4, by: 5).compactMap { index -> Line? in
            func natural(_ place: Int) -> UInt64? { cells[index + place].number.flatMap { UInt64(exactly: $0) } }
            guard let number = natural(0), let letter = cells[index + 1].string?.first,
                let fence = natural(2), let count = natural(3), let name = cells[index + 4].string
            else { return nil }
            return Line(number: number, state: Line.State(letter: letter), fence: fence, count: count, name: name)
        }
        return lines.count == cells.count / 5 ? lines : nil
    }
}

extension EngineReply.Duties {
    /// - Parameter dead: empty, or the session's id and then the number and the name of each claim.
    init(dead: [RESPValue], names: [RESPValue]) {
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

extension RESPValue {
    /// A number, whether it was sent as an integer or as text. Scripts send large ones as text, because Lua's numbers lose digits
    /// beyond 2^53.
    var number: Int? { integer ?? string.flatMap { Int($0) } }
}
