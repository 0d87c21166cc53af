import Foundation
import GameServices
import Games
import Gateway
import Hiredis
import Hummingbird

/// The word game: each player alone, with a leaderboard of the best games and levels by the sum of all.
///
/// The server deals the letters, and counts the points of the words that the page sends. A player has
/// one game at a time: another one replaces it, and its points are lost. Scores are submitted under
/// the id of the game, so a call that is repeated counts once.
struct WordGameService: Sendable {
    /// The time for which a game is kept, in milliseconds.
    private static let lifetime = 600_000

    private let redis: any Redis
    private let namespace: String
    private let words = WordList.common
    /// The best game of each player: all of them, and those of a week.
    private let best: Leaderboard
    /// The sum of all games of each player, which is the level.
    private let points: Leaderboard

    init(redis: any Redis, namespace: String) throws {
        self.redis = redis
        self.namespace = namespace
        var configuration = LeaderboardConfiguration()
        configuration.windows = [.allTime, .weekly]
        best = try Leaderboard("words", redis: redis, namespace: namespace, configuration: configuration)
        configuration.windows = [.allTime]
        configuration.mode = .sum
        points = try Leaderboard("words-points", redis: redis, namespace: namespace, configuration: configuration)
    }

    /// Removes the game and the scores of a player.
    func remove(_ name: String) async throws {
        _ = try await redis.send(RedisCommand("DEL", .string(key(name))))
        for board in [best, points] { _ = try await board.remove(name) }
    }

    // MARK: Calls

    private struct Start: Codable { var id: String }
    private struct Game: Codable {
        var letters: [WordGame.Letter]
        var letterSeconds = WordGame.letterSeconds
        /// The time for which the game has run, if the call was repeated.
        var elapsed: Double
    }
    private struct Finish: Codable { var id: String, words: [[Int]] }
    private struct Result: Codable { var words: [WordGame.ScoredWord], score: Int, best: Int, rank: Int, level: Int }
    private struct Scores: Codable { var top: [Entry], week: [Entry], best: Int?, level: Int }
    private struct Boards: ResponseEncodable { var top: [Entry], week: [Entry], points: [Entry] }
    private struct Entry: Codable {
        var name: String, score: Int, rank: Int
        /// Milliseconds since 1970.
        var time: Int
    }
    private struct Nothing: Codable {}

    func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>, _ limit: AddressLimit) {
        gateway.addCall("/words/start", to: router) { (start: Start, caller) in
            try await answering { try await self.start(start, caller.user) }
        }
        gateway.addCall("/words/finish", to: router) { (finish: Finish, caller) in
            try await answering { try await self.finish(finish, caller.user) }
        }
        gateway.addCall("/words/scores", to: router) { (_: Nothing, caller) in
            try await answering { try await self.scores(caller.user) }
        }
        // Everybody may see the leaderboards.
        router.get("/scores.json") { request, context in
            try await limit.check("scores", perMinute: 60, request, context)
            async let top = best.top(10)
            async let week = best.top(10, in: .weekly)
            async let points = points.top(10)
            return Boards(
                top: Self.entries(try await top), week: Self.entries(try await week),
                points: Self.entries(try await points))
        }
    }

    /// Replies the game with this id, which may have begun before, and what is left of its lifetime. See Lua/words.lua.
    private static let startScript = RedisScript(embedded: PackageResources.words_start_lua)

    private func start(_ start: Start, _ user: String) async throws -> Game {
        guard (1...64).contains(start.id.utf8.count), !start.id.contains("{"), !start.id.contains("}") else {
            throw CallRefusal("id", "an id has 1 to 64 bytes, without braces")
        }
        var generator = SystemRandomNumberGenerator()
        let game = WordGame(words: words.words, using: &generator)
        // A repeated call finds the game that it has started.
        let reply = try await redis.script(
            Self.startScript, keys: [key(user)],
            arguments: [.string(start.id), .bytes(Array(try JSONEncoder().encode(game))), .integer(Self.lifetime)])
        let (stored, elapsed) = try Self.game(in: reply)
        return Game(letters: stored.letters, elapsed: elapsed)
    }

    private func finish(_ finish: Finish, _ user: String) async throws -> Result {
        let (game, elapsed) = try await read(finish.id, user)
        let scored = try game.score(finish.words, elapsed: elapsed, isWord: words.contains)
        let score = scored.reduce(0) { $0 + $1.points }
        let id = "\(user):\(finish.id)"
        async let best = best.submit(score, for: user, id: id).placements[.allTime]
        async let points = points.submit(score, for: user, id: id).placements[.allTime]
        let (placement, sum) = (try await best, try await points)
        return Result(
            words: scored, score: score, best: placement?.score ?? score, rank: placement?.rank ?? 0,
            level: WordGame.level(points: sum?.score ?? score))
    }

    private func scores(_ user: String) async throws -> Scores {
        async let top = best.top(10)
        async let week = best.top(10, in: .weekly)
        async let own = best.entry(of: user)
        async let points = points.entry(of: user)
        return Scores(
            top: Self.entries(try await top), week: Self.entries(try await week), best: try await own?.score,
            level: WordGame.level(points: try await points?.score ?? 0))
    }

    private static func entries(_ page: LeaderboardPage) -> [Entry] {
        page.entries.map {
            Entry(name: $0.name, score: $0.score, rank: $0.rank, time: Int($0.date.timeIntervalSince1970 * 1000))
        }
    }

    // MARK: Games

    private func key(_ user: String) -> String { "{\(namespace):words}:game:\(user)" }

    private static let readScript = RedisScript(embedded: PackageResources.words_read_lua)

    private func read(_ id: String, _ user: String) async throws -> (WordGame, elapsed: Double) {
        try Self.game(in: try await redis.script(Self.readScript, keys: [key(user)], arguments: [.string(id)]))
    }

    /// Returns a game, and the seconds since it has begun, by the clock of Redis: by what is left of its lifetime.
    private static func game(in reply: RESPValue) throws -> (WordGame, elapsed: Double) {
        let parts = reply.array ?? []
        guard parts.count == 2, let data = parts[0].bytes, let left = parts[1].integer, left > 0 else {
            throw CallRefusal("no-game", "there is no such game: it ended too long ago, or another one has replaced it")
        }
        return (try JSONDecoder().decode(WordGame.self, from: Data(data)), Double(lifetime - left) / 1000)
    }
}
