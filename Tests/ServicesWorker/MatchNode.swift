import GameServices
import Hiredis
import QueueListen

/// A node of a matchmaker that enqueues players, and runs until the key `stop` exists or it is killed.
struct MatchNode {
    let redis: RedisClient
    /// The node's name, and the list to which each player is appended before it is enqueued.
    let name: String
    let size: Int
    let tickets: Int

    func run() async throws {
        var configuration = MatchmakerConfiguration()
        configuration.size = size
        configuration.nodeTTL = .seconds(2)
        configuration.takeOverAfter = .milliseconds(200)
        configuration.window = MatchWindow(start: 5, step: 40, every: .milliseconds(300), max: 300)
        try await withPostOffice(redis: redis) { office in
            let matchmaker = try Matchmaker("duel", redis: redis, office: office, configuration: configuration)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await matchmaker.run() }
                for number in 1...tickets {
                    _ = try await redis.send("RPUSH", .string(name), .integer(number))
                    try await matchmaker.enqueue(
                        "\(name)-\(number)", rating: .random(in: 0...1500),
                        properties: ["mode": number % 3 == 0 ? "fast" : "slow"], timeout: .seconds(5))
                }
                while try await redis.send("EXISTS", "stop").integer == 0 {
                    try await Task.sleep(for: .milliseconds(20))
                }
                group.cancelAll()
            }
        }
    }
}
