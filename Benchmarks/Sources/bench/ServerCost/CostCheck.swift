// Compares what operations cost the server with the costs that are recorded in the repository.
import Foundation

/// The recorded costs: `Benchmarks/server-cost.json`.
///
/// Builds of the server differ, so ratios to the cheapest lock are compared, counted in the same run.
struct CostRecord: Codable {
    struct Figure: Codable {
        var name: String
        var instructions: Int
        /// To ``ServerCost/unit``.
        var ratio: Double
    }

    /// The version and build of the server that was counted.
    var server: String
    var figures: [Figure]

    /// Counts operations.
    ///
    /// - Parameters:
    ///   - isCheck: whether to count only what is compared with the record, and less often: exact to a percent, which is
    ///     less than the slack.
    ///   - only: the operation to count; `nil` for all.
    @discardableResult
    static func counted(isCheck: Bool, only: ServerCost? = nil) async throws -> CostRecord {
        var figures: [Figure] = []
        var unit = 1.0
        let all = ServerCost.allCases.filter { !isCheck || $0.isCompared || $0 == .unit }
        for cost in all where only == nil || cost == .unit || cost == only {
            let count = isCheck ? max(10, cost.count / 4) : cost.count
            let instructions = try await CountedServer.perOperation(count) { try await cost.run($0, $1) }
            if cost == .unit { unit = instructions }
            let ratio = (instructions / unit * 1000).rounded() / 1000
            figures.append(Figure(name: cost.rawValue, instructions: Int(instructions.rounded()), ratio: ratio))
            print("\(cost.rawValue): \(Int(instructions.rounded())) instructions, ratio \(ratio)")
        }
        let version = try Program.output(nil, "redis-server", ["--version"])
        return CostRecord(server: version.trimmingCharacters(in: .whitespacesAndNewlines), figures: figures)
    }

    /// Returns a line for each figure that exceeds this record, or is in only one of the two.
    func excesses(of new: CostRecord) -> [String] {
        let limits = Dictionary(uniqueKeysWithValues: figures.map { ($0.name, $0.ratio) })
        let compared = Set(ServerCost.allCases.filter(\.isCompared).map(\.rawValue))
        var found = new.figures.filter { compared.contains($0.name) }.compactMap { figure -> String? in
            guard let recorded = limits[figure.name] else { return "\(figure.name): not recorded" }
            let slack = ServerCost(rawValue: figure.name)?.slack ?? 1
            guard figure.ratio > recorded * slack else { return nil }
            return "\(figure.name): ratio \(figure.ratio), recorded \(recorded), permitted \(slack) times that"
        }
        let counted = Set(new.figures.map(\.name))
        found += compared.subtracting(counted).sorted().map { "\($0): not counted" }
        return found
    }

    /// `bench server-cost --check FILE`, `--record FILE`, `--only NAME` or `--longest`.
    static func run(_ arguments: [String]) async throws {
        guard CountedServer.isAvailable else { throw BenchError("valgrind is missing") }
        if arguments == ["--longest"] { return try await LongestScript.check() }
        if arguments.count == 2, arguments[0] == "--only", let cost = ServerCost(rawValue: arguments[1]) {
            try await counted(isCheck: true, only: cost)
            return
        }
        guard arguments.count == 2, ["--check", "--record"].contains(arguments[0]) else {
            let names = ServerCost.allCases.map { "\n  \($0.rawValue)" }.joined()
            throw BenchError(
                "usage: bench server-cost --check FILE | --record FILE | --only NAME | --longest\nnames:\(names)")
        }
        let file = URL(fileURLWithPath: arguments[1])
        let new = try await counted(isCheck: arguments[0] == "--check")
        if arguments[0] == "--record" {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try (encoder.encode(new) + Data("\n".utf8)).write(to: file)
            return
        }
        let recorded = try JSONDecoder().decode(CostRecord.self, from: Data(contentsOf: file))
        let excesses = recorded.excesses(of: new)
        guard excesses.isEmpty else {
            throw BenchError(
                "these cost the server more than is recorded in \(file.lastPathComponent):\n"
                    + excesses.joined(separator: "\n"))
        }
        try await LongestScript.check()
    }
}
