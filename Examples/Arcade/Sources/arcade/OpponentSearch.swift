import GameServices
import Games
import Gateway
import Hiredis
import QueueListen

/// The search for a random opponent in the duel.
///
/// A player waits with a ticket of the matchmaker, which is recorded in the player's document. So the search outlasts
/// reloads of the page, and the death of the node at which it began.
struct OpponentSearch: Sendable {
    /// A player's ticket of the matchmaker. Its name there contains the player's, so that players cannot use one another's.
    struct Ticket: Codable, Hashable, Sendable {
        static let maxIDBytes = 40
        /// From the page.
        var id: String
        /// The number of times that a ticket was replaced, because it was lost with its node.
        var attempt = 0

        func name(of player: String) -> String { "\(player):\(attempt):\(id)" }
    }

    /// Whether a player waits for an opponent, and the opponent if one was found now.
    struct Progress: Codable, Sendable { var isWaiting: Bool, opponent: String? }

    /// Begins a match, unless that was done before: both players learn of it.
    ///
    /// - Parameters:
    ///   - players: in the order of the match, which is the same for both.
    ///   - id: of the match.
    typealias Begin = (_ players: [String], _ id: String) async throws -> Void

    private let players: DuelPlayers
    private let accounts: Accounts
    private let matchmaker: Matchmaker

    init(
        _ players: DuelPlayers, accounts: Accounts, redis: any Redis, office: PostOffice, namespace: String
    ) throws {
        (self.players, self.accounts) = (players, accounts)
        var configuration = MatchmakerConfiguration()
        // About equal IQ at first, and any player after half a minute.
        configuration.window = MatchWindow(start: 10, step: 20, every: .seconds(3), max: 200)
        matchmaker = try Matchmaker(
            "duel", redis: redis, office: office, namespace: namespace, configuration: configuration)
    }

    func run() async { await matchmaker.run() }

    /// Waits for an opponent of about equal IQ, or begins the match with one who was found. A player who waits already goes
    /// on waiting with the first ticket.
    func wait(_ name: String, id: String, _ begin: Begin) async throws -> Progress {
        guard (1...Ticket.maxIDBytes).contains(id.utf8.count) else {
            throw CallRefusal("id", "the id of a ticket has 1 to \(Ticket.maxIDBytes) bytes")
        }
        let progress = try await follow(name, begin)
        if progress.isWaiting || progress.opponent != nil { return progress }
        let ticket = Ticket(id: id)
        // It is recorded before it waits, so that it is known also if this node dies. Another call that looks at it in
        // between removes it.
        if try await replaceTicket(of: name, nil, by: ticket) == ticket {
            try await enqueue(name, ticket)
            try await replaceTicket(of: name, nil, by: ticket)
        }
        return try await follow(name, begin)
    }

    /// Stops waiting, unless an opponent was found: then the match begins.
    ///
    /// - Parameter id: of the ticket; `nil` for any.
    func cancel(_ name: String, id: String?, _ begin: Begin) async throws -> Progress {
        if let ticket = try await players.read(name).ticket, id == nil || id == ticket.id {
            switch try await state(of: ticket, of: name, cancelling: true) {
            case .matched: break
            default: try await replaceTicket(of: name, ticket, by: nil)
            }
        }
        return try await follow(name, begin)
    }

    /// Cancels the ticket of a player who leaves.
    func abandon(_ name: String) async throws {
        guard let ticket = try await players.read(name).ticket else { return }
        _ = try await state(of: ticket, of: name, cancelling: true)
    }

    /// Acts on the state of the player's ticket: begins the match if an opponent was found, and replaces a ticket that was
    /// lost with its node. A page calls this after each message of the matchmaker and when it is loaded.
    func follow(_ name: String, _ begin: Begin) async throws -> Progress {
        while let ticket = try await players.read(name).ticket {
            switch try await state(of: ticket, of: name) {
            case .waiting: return Progress(isWaiting: true, opponent: nil)
            case .matched(let match):
                let names = match.players.map(\.name)
                if let opponent = names.first(where: { $0 != name }), try await accounts.exists(opponent) {
                    try await begin(names, match.id)
                    try await replaceTicket(of: name, ticket, by: nil)
                    return Progress(isWaiting: false, opponent: opponent)
                }
                // The opponent was a guest who has left.
                fallthrough
            case .lost:
                let next = Ticket(id: ticket.id, attempt: ticket.attempt + 1)
                try await enqueue(name, next)
                try await replaceTicket(of: name, ticket, by: next)
            case .cancelled, .timedOut, nil: try await replaceTicket(of: name, ticket, by: nil)
            }
        }
        return Progress(isWaiting: false, opponent: nil)
    }

    // MARK: Tickets

    /// Returns the state of a ticket; `nil` if the matchmaker does not know it.
    private func state(of ticket: Ticket, of name: String, cancelling: Bool = false) async throws -> TicketState? {
        let ticket = ticket.name(of: name)
        do {
            return cancelling ? try await matchmaker.cancel(ticket) : try await matchmaker.state(of: ticket)
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }

    /// Enqueues a ticket, unless that was done before: the IQ may have changed since then.
    private func enqueue(_ name: String, _ ticket: Ticket) async throws {
        guard try await state(of: ticket, of: name) == nil else { return }
        try await matchmaker.enqueue(
            name, rating: try await players.read(name).state.iq, timeout: .seconds(300), ticket: ticket.name(of: name))
    }

    /// Replaces the player's ticket, unless it is another one by now.
    ///
    /// - Returns: the player's ticket after that.
    @discardableResult
    private func replaceTicket(of name: String, _ old: Ticket?, by new: Ticket?) async throws -> Ticket? {
        try await players.change(name) { player in
            guard player.ticket == old else { return false }
            player.ticket = new
            return true
        }.ticket
    }
}
