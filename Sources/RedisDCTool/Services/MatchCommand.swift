import ArgumentParser
import CommandLineTool
import GameServices
import Hiredis
import QueueListen

/// The `redisdc match` commands.
struct MatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "match",
        abstract: "Matchmakers: bring players of similar ratings together.",
        subcommands: [MatchEnqueue.self, MatchShow.self, MatchCancel.self, MatchCounts.self])
}

/// The options that the `match` commands share, and a matchmaker made from them.
struct MatchOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @OptionGroup private var place: NamespaceOptions
    @Argument(help: "The matchmaker's name.") var matchmaker: String

    func withMatchmaker(
        rules: MatchmakerConfiguration? = nil, _ body: (Matchmaker) async throws -> Void
    ) async throws {
        try await global.withRedis { redis in
            var configuration =
                try await Matchmaker.rules(
                    of: matchmaker, redis: redis, namespace: place.namespace) ?? rules ?? .init()
            configuration.callTimeout = .seconds(5)
            var mail = PostOfficeConfiguration()
            mail.partitions = try await place.agreedMailPartitions(redis)
            mail.callTimeout = .seconds(5)
            try await withPostOffice(redis: redis, namespace: place.namespace, configuration: mail) { office in
                try await body(
                    Matchmaker(
                        matchmaker, redis: redis, office: office, namespace: place.namespace,
                        configuration: configuration))
            }
        }
    }

    func report(_ ticket: String, _ state: TicketState) throws {
        var report = TicketReport(ticket: ticket, state: "\(state)", match: nil)
        guard case .matched(let match) = state else { return try global.report(report.state, report) }
        (report.state, report.match) = ("matched", match)
        let names = match.players.map(\.name).joined(separator: ", ")
        try global.report("matched \(match.id): \(names)", report)
    }
}

/// A ticket as JSON.
private struct TicketReport: Encodable {
    var ticket: String
    var state: String
    var match: Match?
}

/// The `redisdc match enqueue` command.
struct MatchEnqueue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "enqueue", abstract: "Enqueue a player, and wait until the ticket ends.",
        discussion: "The outcome is also sent to the player's mailbox. An interrupted command leaves a ticket that is "
            + "lost after 10 s."
    )
    .examples("redisdc match enqueue duel alice --rating 1200 --property mode=fast --timeout 60")
    @OptionGroup var options: MatchOptions
    @Argument(help: "The player's name.") var player: String
    @Option(help: "The player's rating.") var rating = 0
    @Option(help: "The number of players of a match, 2 to 16, for a new matchmaker.") var size = 2
    @Option(name: .customLong("property"), help: "NAME=VALUE, which must be equal for all players. May be repeated.")
    var properties: [String] = []
    @OptionGroup var wait: TimeoutOption

    func run() async throws {
        var rules = MatchmakerConfiguration()
        rules.size = size
        var equal: [String: String] = [:]
        for property in properties {
            let parts = property.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2 else { throw Failure(.badData, "\"\(property)\" is not NAME=VALUE") }
            equal[parts[0]] = parts[1]
        }
        let timeout = wait.duration.map { max($0, .milliseconds(1)) }
        try await options.withMatchmaker(rules: rules) { [equal] matchmaker in
            try await whileRunning({ await matchmaker.run() }) {
                let result = try await matchmaker.enqueue(
                    player, rating: rating, properties: equal, timeout: timeout)
                var state = result.state
                while state == .waiting {
                    try await Task.sleep(for: .milliseconds(100))
                    state = try await matchmaker.state(of: result.ticket)
                }
                try options.report(result.ticket, state)
                if case .matched = state { return }
                throw Failure(.notAcquired, "the ticket ended without a match: \(state)")
            }
        }
    }
}

/// The `redisdc match show` command.
struct MatchShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Print the state of a ticket.")
        .examples("redisdc match show duel \"$TICKET\"")
    @OptionGroup var options: MatchOptions
    @Argument(help: "The ticket's id.") var ticket: String

    func run() async throws {
        try await options.withMatchmaker { try options.report(ticket, try await $0.state(of: ticket)) }
    }
}

/// The `redisdc match cancel` command.
struct MatchCancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel a ticket, and print the state in which it has ended."
    )
    .examples("redisdc match cancel duel \"$TICKET\"")
    @OptionGroup var options: MatchOptions
    @Argument(help: "The ticket's id.") var ticket: String

    func run() async throws {
        try await options.withMatchmaker { try options.report(ticket, try await $0.cancel(ticket)) }
    }
}

/// The `redisdc match counts` command.
struct MatchCounts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "counts", abstract: "Print the number of waiting tickets and of nodes."
    )
    .examples("redisdc match counts duel")
    @OptionGroup var options: MatchOptions

    private struct Report: Encodable {
        var waiting: Int
        var nodes: Int
    }

    func run() async throws {
        try await options.withMatchmaker { matchmaker in
            let counts = try await matchmaker.counts()
            try options.global.report(
                "\(counts.waiting) waiting tickets, \(counts.nodes) nodes",
                Report(waiting: counts.waiting, nodes: counts.nodes))
        }
    }
}
