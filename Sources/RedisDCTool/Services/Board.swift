import ArgumentParser
package import CommandLineTool
import Foundation
package import GameServices

/// The `redisdc board` commands.
struct Board: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Leaderboards: rankings by score, for all time and for the current day, week and month.",
        subcommands: [BoardSubmit.self, BoardTop.self, BoardAround.self, BoardRank.self, BoardRemove.self])
}

/// The options that the `board` commands share, and a leaderboard made from them.
struct BoardOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Option(help: "The namespace. It separates applications that share a Redis server.")
    var namespace = "default"
    @Argument(help: "The leaderboard's name.") var board: String

    /// - Parameters:
    ///   - rules: for a leaderboard that does not exist; an existing one has its own.
    func withBoard(
        _ windows: [LeaderboardWindow], rules: LeaderboardConfiguration = .init(),
        _ body: (Leaderboard) async throws -> Void
    ) async throws {
        try await global.withRedis { redis in
            var configuration = rules
            if let stored = try await Leaderboard.rules(of: board, redis: redis, namespace: namespace) {
                (configuration.mode, configuration.order) = stored
            }
            configuration.windows = Set(windows)
            configuration.callTimeout = .seconds(5)
            try await body(Leaderboard(board, redis: redis, namespace: namespace, configuration: configuration))
        }
    }
}

/// The options that select one ranking.
struct WindowOptions: ParsableArguments {
    @Option(help: "all-time, daily, weekly or monthly.", transform: WindowOptions.parse(_:))
    var window = LeaderboardWindow.allTime
    @Option(help: "The number of days, weeks or months before the current one.") var ago = 0
}

extension WindowOptions {
    /// Parses a window's description.
    static func parse(_ text: String) throws -> LeaderboardWindow {
        guard let window = LeaderboardWindow(text) else {
            throw ValidationError("\"\(text)\" is not a window: use all-time, daily, weekly or monthly")
        }
        return window
    }

    /// Parses a mode.
    static func parse(mode text: String) throws -> LeaderboardConfiguration.Mode {
        guard let mode = LeaderboardConfiguration.Mode(rawValue: text) else {
            throw ValidationError("\"\(text)\" is not a mode: use best, latest or sum")
        }
        return mode
    }
}

/// An entry as JSON.
struct EntryReport: Encodable {
    var rank: Int
    var name: String
    var score: Int
    /// Seconds since 1970.
    var time: Double

    init(_ entry: LeaderboardEntry) {
        (rank, name, score, time) = (entry.rank, entry.name, entry.score, entry.date.timeIntervalSince1970)
    }
}

extension BoardOptions {
    func report(_ entries: [LeaderboardEntry]) throws {
        for entry in entries { try global.report("\(entry.rank)  \(entry.score)  \(entry.name)", EntryReport(entry)) }
    }
}

extension GameServiceError: ExitError {
    package var exitStatus: ExitStatus {
        switch code {
        case .invalidArgument, .conflict, .wrongType, .outOfRange, .notFound, .changed: .badData
        case .taken, .superseded: .notAcquired
        case .lost: .lost
        case .connectionLost, .notConnected, .stopped, .outOfMemory, .busy: .unavailable
        case .notPermitted: .notPermitted
        case .cancelled: .interrupted
        default: .software
        }
    }
}
