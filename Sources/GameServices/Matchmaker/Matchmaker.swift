// Brings players of similar ratings together, decided by scripts on Redis.
import CoordinationBase
public import Hiredis
public import QueueListen

/// Brings players together who want the same kind of match and have similar ratings.
///
/// ```swift
/// var configuration = MatchmakerConfiguration()
/// configuration.window = MatchWindow(start: 50, step: 50, every: .seconds(2), max: 500)
/// let matchmaker = try Matchmaker("duel", redis: redis, office: office, configuration: configuration)
/// // run it with the other services, then:
/// try await matchmaker.enqueue("alice", rating: 1200, timeout: .seconds(60))
/// // the message of the type "match" arrives in the mailbox "alice"
/// ```
///
/// **Guarantees**
/// - A group is suitable when each rating is within the window of everyone in the group, and all
///   have the same properties. As soon as one is suitable it is matched, by the script that brings
///   its last ticket or widens a window; no suitable group waits for a next round. This is exact for
///   all sizes, not an approximation.
/// - Of several suitable groups with this ticket, the one with the longest waiting ticket is taken;
///   among those, the one with the second longest, and so on.
/// - A ticket ends exactly once: matched, cancelled, timed out or lost. A player has at most one
///   waiting ticket, so nobody is in two matches or plays against oneself.
/// - All players of a match are notified or none is: the match is stored by the same script, then sent to
///   all mailboxes in one send whose id is the match. Any running node sends what a dead one has not
///   sent. A timeout and a loss are sent to the player in the same way.
/// - When a node dies, its tickets leave after ``MatchmakerConfiguration/nodeTTL`` and its players are
///   notified. From then on no match contains them.
/// - A cancel answers either that the ticket is cancelled, or the match.
/// - A failover loses nothing that a living node knows: it remembers for
///   ``MatchmakerConfiguration/repairTime`` what Redis has told it. On each new connection, before
///   anything else is sent, it enqueues waiting tickets again that are missing, and restores matches and
///   other ends of tickets, so that no ticket of theirs waits again.
///
/// **Limits**
/// - Windows widen by the clock of Redis; a node asks for it when the time has come, so a busy node
///   widens late. Without a node that runs (``run()``), nothing widens.
/// - All tickets of a matchmaker are in one slot of a cluster, and mailboxes may be in others.
/// - The window has at most 64 / size distances, so that the work of a script is bounded.
/// - What Redis loses at a failover and no living node remembers is lost. A ticket that a node believes
///   to wait can be matched again before another node restores the match that was lost: that match is
///   then reported as lost (`matchmaker_lost`), and nothing is overwritten. A restored ticket begins with
///   the narrowest window.
public final class Matchmaker: Sendable {
    /// The type of the message that tells a ``Match``, encoded as JSON.
    public static let matchType = "match"
    /// The type of the message that tells an ``EndedTicket``, encoded as JSON.
    public static let endedType = "match-ended"
    /// The limit of ratings: -2^40 to 2^40.
    public static let maxRating = MatchWindow.limit

    /// The name of the matchmaker.
    public let name: String
    /// The settings of the matchmaker.
    public let configuration: MatchmakerConfiguration
    let requests: MatchRequests
    var keys: [String] { requests.keys }
    /// Identifies this node: 16 characters.
    var node: String { requests.node }
    let office: PostOffice
    let scripts: IdempotentScript
    let timer: TickTimer
    let instruments: MatchmakerInstruments
    /// What this node was told; `nil` if nothing is repeated after a failover.
    let memory: MatchmakerMemory?
    private let service = ServiceRun("Matchmaker")

    /// Creates a node of a matchmaker. Nothing is sent.
    ///
    /// - Parameters:
    ///   - name: the kind of match, 1 to 128 bytes of UTF-8 without control characters and braces.
    ///     Tickets of different names never meet.
    ///   - redis: the client, which must be running.
    ///   - office: sends the outcomes to the players' mailboxes. All nodes must use the same namespace
    ///     of mailboxes.
    ///   - namespace: separates this application's matchmakers from those of others in the same
    ///     Redis: 1 to 512 bytes of UTF-8 without control characters, braces and colons.
    ///   - configuration: the settings.
    /// - Throws: `.invalidArgument`.
    public convenience init(
        _ name: String, redis: any Redis, office: PostOffice, namespace: String = "default",
        configuration: MatchmakerConfiguration = .init()
    ) throws(GameServiceError) {
        try self.init(
            name, redis: redis, office: office, namespace: namespace, configuration: configuration,
            clock: .continuous())
    }

    init(
        _ name: String, redis: any Redis, office: PostOffice, namespace: String,
        configuration: MatchmakerConfiguration, clock: MonotonicClock
    ) throws(GameServiceError) {
        try configuration.validate(sendIDLifetime: office.configuration.sendIDLifetime)
        try ServiceKeys.validate(name, "name", maxBytes: 128)
        let keys = try ServiceKeys(namespace: namespace, kind: "match", name: name)
        requests = MatchRequests(
            keys: ["state", "index", "due", "nodes"].map { keys.key($0) }, configuration: configuration,
            node: randomSessionID())
        self.name = name
        self.office = office
        self.configuration = configuration
        timer = TickTimer(clock: clock)
        scripts = IdempotentScript(
            redis: redis, clock: clock, callTimeout: min(configuration.callTimeout, .maxWait))
        instruments = MatchmakerInstruments(configuration.instruments)
        memory = MatchmakerMemory(
            redis: redis, requests: requests, clock: clock, timer: timer, instruments: instruments)
    }

    /// Widens windows, ends tickets whose time is over, and sends outcomes that other nodes have not
    /// sent, until the task is cancelled or a graceful shutdown begins. Call it once: a second call
    /// traps.
    ///
    /// It also keeps this node's tickets alive. After it has ended, they are lost after
    /// ``MatchmakerConfiguration/nodeTTL``, and their players are notified by another node.
    public func run() async { await service.run([tickUntilCancelled]) }

    // MARK: Tickets

    /// Adds a ticket for a player, and matches it if there is a suitable group.
    ///
    /// The outcome is sent to the player's mailbox in any case, also when it is returned here. A call
    /// that is repeated with the same ticket, for example after an error with
    /// ``GameServiceError/mayHaveRun``, has no second effect and returns the ticket's state.
    ///
    /// With all retries it takes at most ``MatchmakerConfiguration/callTimeout``, and the time of a
    /// send when it completes a match. A cancelled call throws `.cancelled` immediately; a request
    /// that was already sent still takes effect.
    ///
    /// - Parameters:
    ///   - player: the name of the player and of the player's mailbox, 1 to 512 bytes of UTF-8
    ///     without control characters and braces.
    ///   - rating: -2^40 to 2^40.
    ///   - properties: must be the same for all players of a match. Up to 16; names are without `=`,
    ///     and all together have at most 256 bytes.
    ///   - timeout: how long the ticket waits, 1 ms to 1 day; `nil` for as long as the node lives.
    ///   - ticket: the ticket's id, 1 to 64 bytes of UTF-8 without control characters and braces;
    ///     `nil` generates one.
    /// - Returns: the ticket's id, and whether it waits or is matched already.
    /// - Throws: `.invalidArgument`; `.conflict` when the player waits with another ticket, when the
    ///   ticket's id was used for something else, or when the matchmaker has other rules;
    ///   `.connectionLost` with `mayHaveRun`; and other failures of a command.
    @discardableResult
    public func enqueue(
        _ player: String, rating: Int, properties: [String: String] = [:], timeout: Duration? = nil,
        ticket: String? = nil
    ) async throws(GameServiceError) -> (ticket: String, state: TicketState) {
        do throws(GameServiceError) {
            let id = ticket ?? randomID()
            try ServiceKeys.validate(player, "player's name", maxBytes: 512)
            try ServiceKeys.validate(id, "ticket's id", maxBytes: 64)
            guard (-Self.maxRating...Self.maxRating).contains(rating) else {
                throw GameServiceError(.invalidArgument, "the rating is \(rating), expected -2^40 to 2^40")
            }
            if let timeout, !(.milliseconds(1) ... .seconds(86400)).contains(timeout) {
                throw GameServiceError(.invalidArgument, "timeout is \(timeout), expected 1 ms to 1 day")
            }
            let now = scripts.clock.now()
            let waiting = EnqueuedTicket(
                id: id, player: player, rating: rating, properties: try Self.text(of: properties),
                end: timeout.map { now + $0 }, isInOrder: ticket == nil)
            return (id, try await store(waiting, timeout))
        } catch { throw error.prefixed("cannot enqueue at matchmaker \"\(name)\"") }
    }

    /// Cancels a ticket.
    ///
    /// Any node can cancel any ticket. Cancelling twice has no second effect.
    ///
    /// - Returns: `.cancelled`, or the state in which the ticket has ended before.
    /// - Throws: `.notFound` when there is no such ticket or it ended longer ago than
    ///   ``MatchmakerConfiguration/endedTicketLifetime``; `.connectionLost` with `mayHaveRun`; and
    ///   other failures of a command.
    @discardableResult
    public func cancel(_ ticket: String) async throws(GameServiceError) -> TicketState {
        try await lookUp(ticket, cancels: true)
    }

    /// Returns the state of a ticket.
    ///
    /// - Throws: the codes of ``cancel(_:)``.
    public func state(of ticket: String) async throws(GameServiceError) -> TicketState {
        try await lookUp(ticket, cancels: false)
    }

    /// Returns the number of waiting tickets, and the number of nodes that are alive.
    ///
    /// - Throws: the failures of a command.
    public func counts() async throws(GameServiceError) -> (waiting: Int, nodes: Int) {
        let reply = try await run(MatchmakerScripts.inspect, [])
        guard let parts = reply.array, parts.count == 2, let waiting = parts[0].integer, let nodes = parts[1].integer
        else { throw GameServiceError(unexpected: reply) }
        return (waiting, nodes)
    }

    private func lookUp(_ ticket: String, cancels: Bool) async throws(GameServiceError) -> TicketState {
        do throws(GameServiceError) {
            try ServiceKeys.validate(ticket, "ticket's id", maxBytes: 64)
            return try await confirming { () async throws(GameServiceError) in
                let reply = try await run(MatchmakerScripts.end, [.string(ticket), cancels ? 1 : 0])
                let parts = reply.array ?? []
                if parts.first?.string == "none" {
                    throw GameServiceError(.notFound, "there is no such ticket, or it ended too long ago")
                }
                guard parts.count == 3, let state = TicketState(parts[0].string, parts[1].string, matchmaker: name)
                else { throw GameServiceError(unexpected: reply) }
                guard cancels, state == .cancelled, let outcome = TicketOutcome(parts[1].string) else {
                    return (state, [])
                }
                let confirmed = ConfirmedOutcome(
                    outcome: outcome, properties: parts[2].string ?? "", isInOrder: true)
                return (state, [.outcome(confirmed)])
            }
        } catch { throw error.prefixed("cannot \(cancels ? "cancel" : "read") a ticket of matchmaker \"\(name)\"") }
    }

    private func store(
        _ ticket: EnqueuedTicket, _ timeout: Duration?
    ) async throws(GameServiceError) -> TicketState {
        let (state, outcomes) = try await confirming { () async throws(GameServiceError) in
            let reply = try await run(MatchmakerScripts.enqueue, MatchRequests.enqueue(ticket, timeout: timeout))
            let parts = reply.array ?? []
            switch parts.first?.string {
            case "conflict":
                throw GameServiceError(.conflict, "the player waits with another ticket: cancel that first")
            case "used":
                throw GameServiceError(.conflict, "the ticket's id was used for something else: use another id")
            default: break
            }
            guard parts.count >= 2, let state = TicketState(parts[0].string, parts[1].string, matchmaker: name) else {
                throw GameServiceError(unexpected: reply)
            }
            let outcomes = parts.dropFirst(2).map(\.string)
            let confirmed = outcomes.compactMap { TicketOutcome($0) }.map { outcome in
                // All tickets of a match have the same properties.
                let isOwn = outcome.players.contains { $0.ticket == ticket.id }
                let properties = isOwn ? ticket.properties : memory?.properties(of: outcome) ?? ""
                return ConfirmedTicket.Kind.outcome(
                    ConfirmedOutcome(outcome: outcome, properties: properties, isInOrder: ticket.isInOrder))
            }
            return ((state, outcomes), confirmed + (state == .waiting ? [.waiting(ticket)] : []))
        }
        instruments.enqueued()
        if state == .waiting {
            // The server's times were earlier than these.
            timer.add(configuration.window, timeout, from: scripts.clock.now())
        }
        for outcome in outcomes { await notify(outcome) }
        return state
    }

    /// Runs a call whose answer is to be remembered, and again while the answer may be that of a server which was replaced
    /// meanwhile.
    ///
    /// - Parameter body: returns the result, and what to remember.
    private func confirming<Result>(
        _ body: () async throws(GameServiceError) -> (Result, [ConfirmedTicket.Kind])
    ) async throws(GameServiceError) -> Result {
        guard let memory else { return try await body().0 }
        let end = scripts.clock.now() + scripts.callTimeout
        while true {
            let call = memory.begin()
            defer { memory.end() }
            let (result, kinds) = try await body()
            if memory.confirm(kinds, of: call) { return result }
            guard scripts.clock.now() < end else {
                throw GameServiceError(
                    .connectionLost, "connections changed for \(configuration.callTimeout)", mayHaveRun: true)
            }
        }
    }

    /// Returns properties as one text, the same for equal properties.
    private static func text(of properties: [String: String]) throws(GameServiceError) -> String {
        guard properties.count <= 16 else {
            throw GameServiceError(.invalidArgument, "there are \(properties.count) properties, expected at most 16")
        }
        for (name, value) in properties {
            try ServiceKeys.validate(name, "property's name", maxBytes: 256)
            guard !name.utf8.contains(UInt8(ascii: "=")) else {
                throw GameServiceError(.invalidArgument, "a property's name has no \"=\", this one is \"\(name)\"")
            }
            if !value.isEmpty { try ServiceKeys.validate(value, "property's value", maxBytes: 256) }
        }
        let text = properties.map { "\($0.key)=\($0.value)" }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(separator: "\t")
        guard text.utf8.count <= 256 else {
            throw GameServiceError(
                .invalidArgument, "the properties have \(text.utf8.count) bytes together, expected at most 256")
        }
        return text
    }

    // MARK: Scripts

    /// Runs a script with the arguments that all have in common, and again until it is answered.
    func run(_ script: RedisScript, _ arguments: [RedisArgument]) async throws(GameServiceError) -> RESPValue {
        let reply = try await scripts.run(
            script, keys: requests.keys, arguments: requests.arguments(arguments),
            until: scripts.clock.now() + scripts.callTimeout)
        if let parts = reply.array, parts.count == 2, parts[0].string == "rules" {
            throw GameServiceError(
                .conflict,
                "size and window are \"\(parts[1].string ?? "")\", but this node is configured with "
                    + "\"\(configuration.rules)\"")
        }
        return reply
    }
}
