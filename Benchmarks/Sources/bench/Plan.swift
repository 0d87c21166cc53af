import Foundation
import RedisDCTesting

/// Which figures are taken, and how: every round takes each of them once, one after the other, so that whatever else
/// happens on the machine meets all alike.
struct Plan {
    enum Group: String, CaseIterable {
        case handoff, pubsub, fanout, pushes, pairs, mutexes, waiters, contended, crowd, primitives
        case send, receipt, listeners, drain
        case mailMemory = "mail-memory"
        case mailCrowd = "mail-crowd"
    }

    private static let usage = """
        usage: bench [--repeats N] [--quick] [--only GROUP]… [--json FILE] [--root FOLDER]
        GROUP is one of \(Group.allCases.map(\.rawValue).joined(separator: ", ")).
        """

    private(set) var sizes = Sizes.full
    private var repeats = 5
    private var groups: [Group] = []
    private var json: String?
    private(set) var root = URL(fileURLWithPath: ".")
    let programs = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()

    init(_ words: [String]) throws {
        var words = words[...]
        while let word = words.popFirst() {
            switch word {
            case "--repeats": repeats = try Self.number(words.popFirst())
            case "--quick": (repeats, sizes) = (1, .quick)
            case "--only": groups.append(try Self.group(words.popFirst()))
            case "--json": json = words.popFirst()
            case "--root": root = URL(fileURLWithPath: words.popFirst() ?? ".")
            default: throw Failed(Self.usage)
            }
        }
        if groups.isEmpty { groups = Group.allCases }
    }

    private static func number(_ word: String?) throws -> Int {
        guard let word, let number = Int(word), number > 0 else { throw Failed("--repeats takes a number") }
        return number
    }

    private static func group(_ word: String?) throws -> Group {
        guard let group = Group(rawValue: word ?? "") else { throw Failed(usage) }
        return group
    }

    /// The Lua files of the engine: what is compared with it runs the same ones.
    var scripts: String { root.appendingPathComponent("Sources/RedisDC/Scripts").path }
    /// Programs in other languages that do what others do.
    var others: URL { root.appendingPathComponent("Benchmarks/Others") }

    func run() async throws {
        try await withLocalRedis { server in
            var table = Table()
            for round in 1...repeats {
                FileHandle.standardError.write(Data("round \(round) of \(repeats)\n".utf8))
                for group in groups {
                    try take(group, server, &table)
                    _ = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "FLUSHALL"])
                }
            }
            print("\n" + table.text)
            if let json { try table.json.write(toFile: json, atomically: true, encoding: .utf8) }
        }
    }

    private func take(_ group: Group, _ server: LocalRedis, _ table: inout Table) throws {
        switch group {
        case .handoff:
            try handoff(server.url, "TCP", &table)
            try handoff(server.unixURL, "Unix socket", &table)
        case .pubsub: try pubSub(server.url, &table)
        case .fanout: try fanOut(server.url, &table)
        case .pushes: try push(server, &table)
        case .pairs: try pairs(server.url, &table)
        case .mutexes: try mutexes(server, &table)
        case .waiters: try waiters(server, &table)
        case .contended: try contended(server.url, &table)
        case .crowd: try crowd(server.url, &table)
        case .primitives: try primitives(server.url, &table)
        case .send: try sends(server, &table)
        case .receipt: try receipt(server.url, &table)
        case .listeners: try listeners(server, &table)
        case .drain: try drain(server, &table)
        case .mailMemory: try mailMemory(server.url, &table)
        case .mailCrowd: try mailCrowd(server.url, &table)
        }
    }

    // MARK: What the groups share

    /// One of our measured processes.
    func worker(
        _ job: String, _ url: String, _ count: Int, _ prefix: String, _ placement: Placement, _ more: [String] = []
    ) throws -> Program {
        try Program(programs, "bench", [job, url, "\(count)", prefix, placement.rawValue] + more)
    }

    /// What the C program prints.
    func baseline<Result: Decodable>(_ words: [String]) throws -> Result {
        try decode(try Program.output(programs, "baseline", words))
    }

    func decode<Result: Decodable>(_ json: String) throws -> Result {
        try JSONDecoder().decode(Result.self, from: Data(json.utf8))
    }

    /// What a worker prints that measures a rate.
    func rate(_ worker: Program) throws -> Double {
        let output = try worker.rest()
        guard let rate = Double(output) else { throw Failed("expected a rate: \(output.prefix(200))") }
        return rate
    }

    func randomPrefix() -> String { "bench-\(UInt32.random(in: 0 ... .max))" }

    /// Commands in a second, as redis-benchmark finds with one connection and 64 commands under way.
    func redisBenchmark(_ server: LocalRedis, requests: Int, options: [String] = [], _ command: [String]) throws
        -> Double
    {
        let words = ["-p", "\(server.port)", "-P", "64", "-c", "1", "-n", "\(requests)", "--csv"] + options + command
        return try rate(csv: try Program.output(nil, "redis-benchmark", words))
    }

    /// Of what redis-benchmark prints.
    func rate(csv: String) throws -> Double {
        guard let rate = csv.split(separator: "\n").last?.split(separator: ",").dropFirst().first,
            let number = Double(rate.filter { $0 != "\"" })
        else { throw Failed("redis-benchmark said: \(csv.prefix(200))") }
        return number
    }
}
