import Foundation
import Hiredis

/// The `rendezvous` command, one node of a rendezvous: `rendezvous a`, `rendezvous b`, or
/// `rendezvous 2 of 5`.
///
/// Each node runs in a process of its own, on any machine that reaches the same Redis server
/// (`REDIS_URL`).
@main
struct Rendezvous {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        let settings = ProcessInfo.processInfo.environment
        let rounds = settings["ROUNDS"].map { Int($0) ?? 0 } ?? 10
        let run = Run(name: settings["RUN"] ?? "rendezvous", rounds: rounds)
        do {
            guard rounds >= 1, let part = Part(words) else {
                fail("usage: rendezvous a | b | NUMBER of COUNT   (environment: REDIS_URL, RUN=name, ROUNDS=10)", 64)
            }
            try await withRedisClient(url: settings["REDIS_URL"] ?? "redis://127.0.0.1:6379") { redis in
                switch part {
                case .a: try await nodeA(run, redis: redis)
                case .b: try await nodeB(run, redis: redis)
                case .one(let number, let count): try await node(number, of: count, run, redis: redis)
                }
            }
            print("\(words.joined(separator: " ")): met \(rounds) times")
        } catch {
            fail("\(error)", 69)
        }
    }

    private static func fail(_ message: String, _ status: Int32) -> Never {
        FileHandle.standardError.write(Data("rendezvous: \(message)\n".utf8))
        exit(status)
    }
}

/// The part of a node, from the command line.
private enum Part {
    case a, b
    case one(Int, of: Int)

    init?(_ words: [String]) {
        switch words {
        case ["a"]: self = .a
        case ["b"]: self = .b
        default:
            guard words.count == 3, words[1] == "of", let number = Int(words[0]), let count = Int(words[2]),
                count >= 2, (1...count).contains(number)
            else { return nil }
            self = .one(number, of: count)
        }
    }
}
