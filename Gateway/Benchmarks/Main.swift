import Foundation
import RedisDCTesting

/// Measures the gateway, and beside it, in the same run, an empty Hummingbird server and readers in process.
@main
struct GatewayBenchmarks {
    static let usage = """
        usage: gateway-bench [--rounds NUMBER] [--streams NUMBER] [--only idle|latency|rate|resume]...

        Prints a line for each figure: the median of the rounds, and the least and the greatest. Build it with -c release, and
        run nothing else on the machine.

          --rounds NUMBER   5 by default
          --streams NUMBER  idle streams of each kind, 10,000 by default; each needs a file of this process and of the server
        """

    static func main() async throws {
        // Pipes of servers that have ended.
        signal(SIGPIPE, SIG_IGN)
        var words = Array(CommandLine.arguments.dropFirst())
        if words.first == "serve" { return try await serve(Array(words.dropFirst())) }
        var (rounds, streams, only): (Int, Int, Set<String>) = (5, 10_000, [])
        while !words.isEmpty {
            let word = words.removeFirst()
            let value = words.isEmpty ? "" : words.removeFirst()
            switch (word, Int(value)) {
            case ("--rounds", let number?): rounds = number
            case ("--streams", let number?): streams = number
            case ("--only", nil): only.insert(value)
            default:
                print(usage)
                exit(word == "--help" ? 0 : 64)
            }
        }
        let streamCount = streams
        let groups: [(String, @Sendable (LocalRedis) async throws -> [Figure])] = [
            ("idle", { try await Idle.measure($0, streams: streamCount) }),
            ("latency", { try await Latency.measure($0) }),
            ("rate", { try await Rate.measure($0) }),
            ("resume", { try await Resume.measure($0) }),
        ]
        for (name, measure) in groups where only.isEmpty || only.contains(name) {
            var figures: [[Figure]] = []
            for _ in 0..<rounds { figures.append(try await withLocalRedis { try await measure($0) }) }
            Figure.printTable(figures)
        }
    }
}

/// A measured value with its unit.
struct Figure: Sendable {
    var name: String
    var value: Double
    var unit: String

    /// Prints the median and the range of each figure of several rounds.
    static func printTable(_ rounds: [[Figure]]) {
        for (index, figure) in (rounds.first ?? []).enumerated() {
            let values = rounds.map { $0[index].value }.sorted()
            let numbers = [values[values.count / 2], values[0], values[values.count - 1]].map {
                String(format: $0 < 10 ? "%.2f" : $0 < 100 ? "%.1f" : "%.0f", $0)
            }
            print("\(figure.name): \(numbers[0]) \(figure.unit) (\(numbers[1]) to \(numbers[2]))")
        }
        fflush(nil)
    }
}

extension Array where Element == Double {
    /// The value below which a share of the values lies.
    func percentile(_ share: Double) -> Double {
        let sorted = sorted()
        return sorted[Swift.min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}
