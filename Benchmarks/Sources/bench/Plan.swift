import Foundation
import RedisDCTesting

/// The figures to measure. Each round measures every figure once, one after the other, so that other activity on the
/// machine affects all of them alike.
struct Plan {
    enum Group: String, CaseIterable {
        case handoff, pubsub, fanout, pushes, pairs, locality, mutexes, waiters, contended, crowd, primitives
        case send, receipt, listeners, drain, work
        case mailMemory = "mail-memory"
        case mailCrowd = "mail-crowd"
        case services, repair
        case sentinel, cluster
        case clusterCost = "cluster-cost"
        case serverCost = "server-cost"
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

    init(_ arguments: [String]) throws {
        var arguments = arguments[...]
        var isQuick = false
        while let argument = arguments.popFirst() {
            switch argument {
            case "--repeats": repeats = try Self.number(arguments.popFirst())
            case "--quick": (repeats, sizes, isQuick) = (1, .quick, true)
            case "--only": groups.append(try Self.group(arguments.popFirst()))
            case "--json": json = arguments.popFirst()
            case "--root": root = URL(fileURLWithPath: arguments.popFirst() ?? ".")
            default: throw BenchError(Self.usage)
            }
        }
        // The counts of instructions take longer than all others together.
        if groups.isEmpty { groups = Group.allCases.filter { !isQuick || $0 != .clusterCost && $0 != .serverCost } }
    }

    private static func number(_ word: String?) throws -> Int {
        guard let word, let number = Int(word), number > 0 else {
            throw BenchError("--repeats must be a number of 1 or more")
        }
        return number
    }

    private static func group(_ word: String?) throws -> Group {
        guard let group = Group(rawValue: word ?? "") else { throw BenchError(usage) }
        return group
    }

    /// The folder of the engine's Lua files. The C baseline runs the same files.
    var scripts: String { root.appendingPathComponent("Sources/RedisDC/Scripts").path }
    /// The folder of the programs that measure other libraries.
    var others: URL { root.appendingPathComponent("Benchmarks/Others") }

    func run() async throws {
        try await withLocalRedis { server in
            var table = Table()
            for round in 1...repeats {
                FileHandle.standardError.write(Data("round \(round) of \(repeats)\n".utf8))
                for group in groups {
                    try await take(group, server, &table)
                    _ = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "FLUSHALL"])
                }
            }
            print("\n" + table.text)
            if let json { try table.json.write(toFile: json, atomically: true, encoding: .utf8) }
        }
    }

    private func take(_ group: Group, _ server: LocalRedis, _ table: inout Table) async throws {
        switch group {
        case .handoff:
            try handoff(server.url, "TCP", &table)
            try handoff(server.unixURL, "Unix socket", &table)
        case .pubsub: try pubSub(server.url, &table)
        case .fanout: try fanOut(server.url, &table)
        case .pushes: try push(server, &table)
        case .pairs: try pairs(server.url, &table)
        case .locality: try locality(server.url, &table)
        case .mutexes: try mutexes(server, &table)
        case .waiters: try waiters(server, &table)
        case .contended: try contended(server.url, &table)
        case .crowd: try crowd(server.url, &table)
        case .primitives: try primitives(server.url, &table)
        case .send: try sends(server, &table)
        case .receipt: try receipt(server.url, &table)
        case .listeners: try listeners(server, &table)
        case .drain: try drain(server, &table)
        case .work: try work(server, &table)
        case .mailMemory: try mailMemory(server.url, &table)
        case .mailCrowd: try mailCrowd(server.url, &table)
        case .services: try await services(server, &table)
        case .repair: try repair(server.url, &table)
        case .sentinel: try await sentinel(&table)
        case .cluster: try await cluster(server, &table)
        case .clusterCost: try await clusterCost(&table)
        case .serverCost: try await serverCost(&table)
        }
    }

    // MARK: Functions that the groups share

    /// Starts a worker: this program as one measured process.
    func worker(
        _ job: String, _ url: String, _ count: Int, _ prefix: String, _ placement: Placement, _ more: [String] = []
    ) throws -> Program {
        try Program(programs, "bench", [job, url, "\(count)", prefix, placement.rawValue] + more)
    }

    /// Runs the C program and decodes the JSON that it prints.
    func baseline<Result: Decodable>(_ words: [String]) throws -> Result {
        try decode(try Program.output(programs, "baseline", words))
    }

    func decode<Result: Decodable>(_ json: String) throws -> Result {
        try JSONDecoder().decode(Result.self, from: Data(json.utf8))
    }

    /// Waits for a worker that measures a rate and returns the rate that it prints.
    func rate(_ worker: Program) throws -> Double {
        let output = try worker.rest()
        guard let rate = Double(output) else { throw BenchError("a worker printed no rate: \(output.prefix(200))") }
        return rate
    }

    func randomPrefix() -> String { "bench-\(UInt32.random(in: 0 ... .max))" }

    /// Returns the commands per second that redis-benchmark measures with one connection and a pipeline of 64.
    func redisBenchmark(_ server: LocalRedis, requests: Int, options: [String] = [], _ command: [String]) throws
        -> Double
    {
        let words = ["-p", "\(server.port)", "-P", "64", "-c", "1", "-n", "\(requests)", "--csv"] + options + command
        return try rate(csv: try Program.output(nil, "redis-benchmark", words))
    }

    /// Returns the rate from the CSV output of redis-benchmark.
    func rate(csv: String) throws -> Double {
        guard let rate = csv.split(separator: "\n").last?.split(separator: ",").dropFirst().first,
            let number = Double(rate.filter { $0 != "\"" })
        else { throw BenchError("redis-benchmark printed no rate: \(csv.prefix(200))") }
        return number
    }
}
