// The commands of one leaderboard.
import ArgumentParser
import CommandLineTool
import GameServices

/// The `redisdc board submit` command.
struct BoardSubmit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit", abstract: "Submit a score, and print the rank in each window.",
        discussion: "With --id, repeating the same submit within an hour has no second effect."
    )
    .examples("redisdc board submit maze alice 1200 --id run-17 --window weekly")
    @OptionGroup var options: BoardOptions
    @Argument(help: "The player's name.") var name: String
    @Argument(help: "A whole number. Put -- before the arguments if it is negative.") var score: Int
    @Option(help: "An identifier that makes the submit idempotent.") var id: String?
    @Option(
        help: "A window in which the score is ranked: all-time, daily, weekly or monthly. May be repeated.",
        transform: WindowOptions.parse(_:))
    var window: [LeaderboardWindow] = [.allTime]
    @Option(help: "best, latest or sum, for a new leaderboard.", transform: WindowOptions.parse(mode:))
    var mode = LeaderboardConfiguration.Mode.best
    @Flag(help: "A lower score is better, for a new leaderboard.") var lowerIsBetter = false

    private struct Report: Encodable {
        var window: String
        var period: String
        var rank: Int
        var score: Int
        var entryCount: Int
        var isChanged: Bool
    }

    func run() async throws {
        var rules = LeaderboardConfiguration()
        rules.mode = mode
        if lowerIsBetter { rules.order = .lowerIsBetter }
        try await options.withBoard(window, rules: rules) { board in
            let placements = try await board.submit(score, for: name, id: id).placements
            for (window, place) in placements.sorted(by: { $0.key.description < $1.key.description }) {
                try options.global.report(
                    "\(place.period)  rank \(place.rank) of \(place.entryCount)  score \(place.score)",
                    Report(
                        window: "\(window)", period: place.period, rank: place.rank, score: place.score,
                        entryCount: place.entryCount, isChanged: place.isChanged))
            }
        }
    }
}

/// The `redisdc board top` command.
struct BoardTop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "top", abstract: "Print the best entries.")
        .examples("redisdc board top maze --limit 3 --window weekly --ago 1")
    @OptionGroup var options: BoardOptions
    @OptionGroup var place: WindowOptions
    @Option(help: "The maximum number of entries, 1 to 1,000.") var limit = 10
    @Option(help: "The number of entries to leave out at the top.") var skip = 0

    func run() async throws {
        try await options.withBoard([place.window]) { board in
            try options.report(try await board.top(limit, in: place.window, skipping: skip, ago: place.ago).entries)
        }
    }
}

/// The `redisdc board around` command.
struct BoardAround: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "around", abstract: "Print a player's entry and those around it."
    )
    .examples("redisdc board around maze alice --limit 5")
    @OptionGroup var options: BoardOptions
    @OptionGroup var place: WindowOptions
    @Option(help: "The number of entries, 1 to 1,000.") var limit = 11
    @Argument(help: "The player's name.") var name: String

    func run() async throws {
        try await options.withBoard([place.window]) { board in
            try options.report(try await board.around(name, limit, in: place.window, ago: place.ago).entries)
        }
    }
}

/// The `redisdc board rank` command.
struct BoardRank: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rank", abstract: "Print the entries of some players, best first."
    )
    .examples("redisdc board rank maze alice bob carol")
    @OptionGroup var options: BoardOptions
    @OptionGroup var place: WindowOptions
    @Argument(help: "The players' names.") var names: [String]

    func run() async throws {
        try await options.withBoard([place.window]) { board in
            try options.report(try await board.entries(of: names, in: place.window, ago: place.ago).entries)
        }
    }
}

/// The `redisdc board remove` command.
struct BoardRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a player from all rankings that are kept."
    )
    .examples("redisdc board remove maze alice")
    @OptionGroup var options: BoardOptions
    @Argument(help: "The player's name.") var name: String

    private struct Report: Encodable {
        var removed: Int
    }

    func run() async throws {
        try await options.withBoard([.allTime, .daily, .weekly, .monthly]) { board in
            let count = try await board.remove(name)
            try options.global.report("removed from \(count) rankings", Report(removed: count))
        }
    }
}
