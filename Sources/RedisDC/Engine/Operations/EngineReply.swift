// The replies of the engine's scripts.
import Hiredis

/// A reply of one of the engine's scripts.
enum EngineReply: Sendable {
    /// `fence`: 1 for consumed permits. `arrival`: the generation of a barrier, phaser or exchanger, and the party's
    /// index in it, as 1024 * generation + index; without a meaning for other kinds.
    case granted(fence: UInt64, arrival: UInt64 = 0)
    /// `more`: the script has left waiters for `recheck`.
    case queued(more: Bool = false)
    /// There are not enough permits now, and the request may not queue; or the claim that the request is about is not
    /// held.
    case none
    /// The claim has already ended. `word`: how another one has ended it, or empty.
    case over(word: String = "")
    /// `count`: after `countDown` the remaining count; after `reduce` the permits that the lease had, 0 when it is not
    /// held; after `create`, `destroy`, `release`, `leave` and `end` 1 or 0, for whether there was an effect; else 1.
    /// `more`: the script has left waiters for `recheck`.
    case done(count: Int, more: Bool)
    case conflict(kind: String, permits: Int)
    case missing
    case gone
    case broken
    /// The item with the id of this put was put before.
    case known
    /// The request was refused, and no copy of it will have an effect.
    case settled
    /// The session no longer exists: it has expired, or else Redis has lost its data.
    case lost(isExpired: Bool)
    /// The slot has served a later request: this one arrived again, long after its reply.
    case stale
    /// The slot has a claim that has not ended, so Redis has lost its end.
    case occupied
    /// The script of this family must run instead.
    case family(Family)
    /// The generation of the barrier has opened and the grant is about to follow, so the party cannot leave.
    case again
    /// `notices`: see ``Notices``. `isDataLost`: the last request that the session has seen is not there.
    case heartbeat(notices: UInt64, isDataLost: Bool, MaintenanceWork)
    /// `next`: the first slot of the next page, or 0 after the last.
    case page(next: Int, [Line])
    /// Claims of an expired session; `below`: where the list continues, or 0.
    case sweep(below: Int, [ExpiredClaim])
    /// The data of a lease: an item, or some values of a meeting. `next`: the first value of the next page, or 0.
    case values([[UInt8]], next: Int)

    /// One claim of the session, in a page of a reconciliation.
    struct Line: Sendable {
        enum State: Sendable, Equatable {
            case waiting, granted, held
            /// Another one has ended the claim.
            case ended(word: String)
        }
        var slot = 0
        var number: UInt64
        var state: State
        var fence: UInt64
        /// The number of permits; for a grant at a barrier its generation and index, as in ``granted(fence:arrival:)``.
        var count: UInt64 = 1
        var family = Family.permits
        var name: String
    }

    /// Work for the whole partition that any session can do.
    struct MaintenanceWork: Sendable {
        /// Expired sessions, to sweep.
        var expired: [String]
        /// Resources for `recheck`.
        var names: [String]
        /// Whether this session was not listed: it has just joined, or the list must be made again.
        var isUnlisted = false
        /// When the next heartbeat must be sent, because another session expires then; `nil` for the usual time.
        var next: Duration?
    }

    /// A claim of an expired session, which must be ended.
    struct ExpiredClaim: Sendable {
        var id: ClaimID
        var family: Family
        var name: String
    }
}

// MARK: Decoding

extension EngineReply {
    /// Decodes a reply. Returns `nil` for a reply that the script of the operation never sends.
    init?(_ reply: RESPValue, to operation: any EngineOperation) {
        if let number = reply.integer {
            guard let decoded = operation.reply(number, more: false) else { return nil }
            self = decoded
            return
        }
        guard let parts = reply.array, let first = parts.first else { return nil }
        func number(_ index: Int) -> Int? { index < parts.count ? parts[index].integer : nil }
        func natural(_ index: Int) -> UInt64? { number(index).flatMap { UInt64(exactly: $0) } }
        if let fence = natural(0) {
            self = .granted(fence: fence, arrival: natural(1) ?? 0)
            return
        }
        guard let word = first.string else { return nil }
        switch word {
        case "ok":
            guard let decoded = operation.reply(ok: parts) else { return nil }
            self = decoded
        case "more":
            guard let number = number(1), let decoded = operation.reply(number, more: true) else { return nil }
            self = decoded
        case "none": self = .none
        case "over":
            let word = parts.last?.string ?? ""
            self = operation is Settle && word == "-1" ? .settled : .over(word: word)
        case "missing": self = .missing
        case "gone": self = .gone
        case "broken": self = .broken
        case "known": self = .known
        case "lost": self = .lost(isExpired: parts.last?.string == "ended")
        case "stale": self = .stale
        case "occupied": self = .occupied
        case "again": self = .again
        case "alive": self = .done(count: 0, more: false)
        case "family":
            guard let family = parts.last?.string.flatMap({ Family(rawValue: $0) }) else { return nil }
            self = .family(family)
        case "conflict":
            guard parts.count == 3, let kind = parts[1].string, let permits = number(2) else { return nil }
            self = .conflict(kind: kind, permits: permits)
        case "values":
            guard parts.count == 3, let values = parts[1].array, let next = number(2) else { return nil }
            self = .values(values.compactMap(\.bytes), next: next)
        default: return nil
        }
    }

    /// Decodes lines of seven cells each: slot, number, state, tick, count, mode, name. Returns `nil` when a cell has another
    /// form.
    static func lines(_ cells: [RESPValue]) -> [Line]? {
        let lines = stride(from: 0, to: cells.count - 6, by: 7).compactMap { index -> Line? in
            func natural(_ place: Int) -> UInt64? { cells[index + place].integer.flatMap { UInt64(exactly: $0) } }
            guard let slot = natural(0), let number = natural(1), let letter = cells[index + 2].string,
                let fence = natural(3), let count = natural(4), let mode = cells[index + 5].string,
                let name = cells[index + 6].string
            else { return nil }
            let state: Line.State
            switch letter {
            case "g": state = .granted
            case "h": state = .held
            case "d": state = .ended(word: name)
            default: state = .waiting
            }
            return Line(
                slot: Int(slot), number: number, state: state, fence: fence, count: count, family: Family(mode: mode),
                name: name)
        }
        return lines.count == cells.count / 7 ? lines : nil
    }

    /// Decodes claims of three cells each: id, mode, name.
    static func expiredClaims(_ cells: [RESPValue]) -> [ExpiredClaim]? {
        let claims = stride(from: 0, to: cells.count - 2, by: 3).compactMap { index -> ExpiredClaim? in
            guard let id = cells[index].string.flatMap({ ClaimID($0) }), let mode = cells[index + 1].string,
                let name = cells[index + 2].string
            else { return nil }
            return ExpiredClaim(id: id, family: Family(mode: mode), name: name)
        }
        return claims.count == cells.count / 3 ? claims : nil
    }
}

extension EngineReply.Line {
    /// Whether the claim exists.
    var isClaim: Bool { if case .ended = state { false } else { true } }

    /// Whether the slot has a claim, or had one that another has ended. A word begins with a letter; a reply that the slot
    /// keeps does not.
    var isOfClaim: Bool { if case .ended(let word) = state { word.first?.isLowercase ?? false } else { true } }
}

extension RESPValue {
    /// A number that was sent as an integer or as text.
    var number: Int? { integer ?? string.flatMap { Int($0) } }
}
