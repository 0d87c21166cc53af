// What Redis has told a node lately about tickets, to be repeated if a failover loses it.
import CoordinationBase
import DequeModule
import Hiredis

/// A ticket that waits.
struct EnqueuedTicket: Sendable {
    let id: String
    let player: String
    let rating: Int
    let properties: String
    /// When it times out, by the clock of the node; `nil` for never.
    let end: Duration?
    /// Whether it was stored when it was confirmed, and not before.
    let isInOrder: Bool
}

/// The end of tickets.
struct ConfirmedOutcome: Sendable {
    let outcome: TicketOutcome
    /// The properties of its tickets, as far as they are known.
    let properties: String
    let isInOrder: Bool
}

/// Something that Redis has confirmed.
struct ConfirmedTicket: ConfirmedRequest {
    enum Kind: Sendable {
        case waiting(EnqueuedTicket)
        case outcome(ConfirmedOutcome)
    }

    let number: UInt64
    let kind: Kind
    let confirmedAt: Duration

    var waiting: EnqueuedTicket? {
        if case .waiting(let ticket) = kind { ticket } else { nil }
    }

    var outcome: ConfirmedOutcome? {
        if case .outcome(let outcome) = kind { outcome } else { nil }
    }

    /// The tickets that it is about.
    var tickets: [String] {
        switch kind {
        case .waiting(let ticket): [ticket.id]
        case .outcome(let outcome): outcome.outcome.players.map(\.ticket)
        }
    }

    var recordCount: Int { tickets.count }

    var isInOrder: Bool {
        switch kind {
        case .waiting(let ticket): ticket.isInOrder
        case .outcome(let outcome): outcome.isInOrder
        }
    }

    /// About the number of bytes that it takes.
    var size: Int {
        switch kind {
        case .waiting(let ticket): 256 + ticket.player.utf8.count + ticket.properties.utf8.count
        case .outcome(let outcome): outcome.outcome.players.reduce(384) { $0 + 128 + $1.name.utf8.count }
        }
    }
}

/// What a node was told last, the oldest first.
struct ConfirmedTickets: ConfirmationLog {
    private(set) var changes = Deque<ConfirmedTicket>()
    private let maxAge: Duration
    private let maxBytes: Int
    private var bytes = 0
    private var lastNumber: UInt64 = 0
    /// The number of losses that were reported.
    var lossCount = 0

    init(maxAge: Duration, maxBytes: Int) { (self.maxAge, self.maxBytes) = (maxAge, maxBytes) }

    mutating func append(_ kind: ConfirmedTicket.Kind, at now: Duration) {
        lastNumber += 1
        let change = ConfirmedTicket(number: lastNumber, kind: kind, confirmedAt: now)
        changes.append(change)
        bytes += change.size
        forgetOld(now)
    }

    /// Forgets what is older than the time, and what exceeds the bytes.
    mutating func forgetOld(_ now: Duration) {
        while let first = changes.first, bytes > maxBytes || first.confirmedAt + maxAge < now {
            bytes -= first.size
            changes.removeFirst()
        }
    }

    /// Removes what cannot be repeated.
    mutating func remove(_ numbers: Set<UInt64>) {
        if numbers.isEmpty { return }
        changes.removeAll { numbers.contains($0.number) }
        bytes = changes.reduce(0) { $0 + $1.size }
    }

    /// The tickets that still wait as far as the node knows, in the order of their confirmations.
    ///
    /// An outcome ends its tickets, in whichever order they were confirmed. A player who waits with another ticket since has
    /// no other one.
    static func waiting(among changes: [ConfirmedTicket]) -> [(number: UInt64, ticket: EnqueuedTicket)] {
        var ended: Set<ByteName> = []
        for change in changes where change.outcome != nil { ended.formUnion(change.tickets.map { ByteName($0) }) }
        var players: Set<ByteName> = []
        var waiting: [(UInt64, EnqueuedTicket)] = []
        for change in changes.reversed() {
            guard let ticket = change.waiting, players.insert(ByteName(ticket.player)).inserted else { continue }
            if !ended.contains(ByteName(ticket.id)) { waiting.append((change.number, ticket)) }
        }
        return waiting.reversed()
    }
}
