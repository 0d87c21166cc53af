// The replies of the engine's scripts.
import Hiredis

/// A reply of one of the engine's scripts.
enum EngineReply: Sendable {
    /// `arrival`: the generation of a barrier, phaser or exchanger, and the party's index in it, as
    /// 1024 * generation + index; without a meaning for other kinds.
    case granted(fence: UInt64, arrival: UInt64 = 0)
    case queued
    /// There are not enough permits now, and the request may not queue; or the claim that the request is about is not
    /// held.
    case none
    /// The claim has already ended: it was cancelled, its resource was destroyed, or an operator released it.
    case over
    /// `count`: after `countDown` the remaining count; after `reduce` the permits that the lease had, 0 when it is not
    /// held; after `create`, `destroy`, `release` and `leave` 1 or 0, for whether there was an effect; else 1. `more`:
    /// the script has left waiters for `give`.
    case done(count: Int, more: Bool)
    case conflict(kind: String, permits: Int, policy: String)
    case missing
    case gone
    case broken
    /// The session no longer exists: it has expired, or else Redis has lost its data.
    case lost(isExpired: Bool)
    /// The reply to this request had already been reported as received; it is no longer kept.
    case stale
    case heartbeat(grants: Int, claims: Int, MaintenanceWork)
    case page(next: String, [Line])
    /// The data of a lease: an item, or the values of a meeting.
    case values([[UInt8]])

    /// One claim of the session, in a page of a reconciliation.
    struct Line: Sendable {
        enum State: Sendable {
            case waiting, granted, held

            /// An unknown letter counts as waiting: the claim exists and holds nothing.
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
        /// The number of permits; for a grant at a barrier its generation and index, as in ``granted(fence:arrival:)``.
        var count: UInt64 = 1
        var name: String
    }

    /// Work for the whole partition that any session can do.
    struct MaintenanceWork: Sendable {
        /// An ended session and some of its claims, which must be released.
        var dead: (session: String, claims: [(number: UInt64, name: String)])?
        /// Resources with waiters for `give`.
        var names: [String]
    }
}

// MARK: Decoding

extension EngineReply {
    /// Decodes a reply. Returns `nil` for a reply that none of the engine's scripts sends.
    init?(_ reply: RESPValue, to operation: Operation) {
        guard let parts = reply.array, let word = parts.first?.string else { return nil }
        func number(_ index: Int) -> Int? { index < parts.count ? parts[index].number : nil }
        switch (word, operation) {
        case ("granted", _):
            guard let fence = number(1).flatMap({ UInt64(exactly: $0) }), let arrival = UInt64(exactly: number(2) ?? 0)
            else { return nil }
            self = .granted(fence: fence, arrival: arrival)
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
            self = .heartbeat(grants: grants, claims: claims, MaintenanceWork(dead: dead, names: names))
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

    /// Decodes lines of five cells each: number, state, fence, count, name. Returns `nil` when a cell has another form.
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

extension EngineReply.MaintenanceWork {
    /// - Parameters:
    ///   - dead: empty, or the ended session's id and then the number and the resource's name of each claim.
    ///   - names: resources with waiters for `give`.
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
    /// A number that was sent as an integer or as text. Scripts send fences and other large numbers as text.
    var number: Int? { integer ?? string.flatMap { Int($0) } }
}
