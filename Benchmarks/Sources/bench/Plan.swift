import Foundation
import RedisDCTesting

/// Which figures are taken, and how: every round takes each of them once, one after the other, so that whatever else
/// happens on the machine meets all alike.
struct Plan {
    private var repeats = 5
    private var handoffs = 20_000
    private var pushes = 640_000
    private var fanOuts = 100
    private var json: String?
    private let programs = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()

    init(_ words: [String]) throws {
        var words = words[...]
        while let word = words.popFirst() {
            switch word {
            case "--repeats": repeats = try Self.number(words.popFirst())
            case "--quick": (repeats, handoffs, pushes, fanOuts) = (1, 2000, 64_000, 10)
            case "--json": json = words.popFirst()
            default: throw Failed("usage: bench [--repeats N] [--quick] [--json FILE]")
            }
        }
    }

    private static func number(_ word: String?) throws -> Int {
        guard let word, let number = Int(word), number > 0 else { throw Failed("--repeats takes a number") }
        return number
    }

    func run() async throws {
        try await withLocalRedis { server in
            var table = Table()
            for round in 1...repeats {
                FileHandle.standardError.write(Data("round \(round) of \(repeats)\n".utf8))
                for (name, url) in [("TCP", server.url), ("Unix socket", server.unixURL)] {
                    try handoff(url, name, &table)
                }
                try pubSub(server.url, &table)
                try fanOut(server.url, &table)
                try push(server, &table)
            }
            print(table.text)
            if let json { try table.json.write(toFile: json, atomically: true, encoding: .utf8) }
        }
    }

    // MARK: What is measured

    private func handoff(_ url: String, _ transport: String, _ table: inout Table) throws {
        let group = "Hand-off between two processes, \(transport), µs"
        let floor = try figures(Program(programs, "baseline", ["handoff", url, "\(handoffs)"]).output())
        table.add(group, "C, hiredis", floor, goal: nil)
        for placement in Placement.allCases {
            let prefix = "bench-\(UInt32.random(in: 0 ... .max))"
            let peer = try Program(programs, "bench", ["handoff-peer", url, "\(handoffs)", prefix, placement.rawValue])
            let output = try Program(programs, "bench", ["handoff", url, "\(handoffs)", prefix, placement.rawValue])
                .output()
            _ = try peer.output()
            let goal = transport == "TCP" ? (placement == .pinned ? "at most 1.10" : "at most 1.5") : nil
            table.add(group, "ClassicSemaphore, \(placement.title)", try figures(output), goal: goal)
        }
    }

    private func pubSub(_ url: String, _ table: inout Table) throws {
        let group = "Publish to receipt in another process, TCP, µs"
        let floor = try figures(Program(programs, "baseline", ["pubsub", url, "\(handoffs / 2)"]).output())
        table.add(group, "C, hiredis", floor, goal: nil)
        for placement in Placement.allCases {
            let prefix = "bench-\(UInt32.random(in: 0 ... .max))"
            let words = [url, "\(handoffs / 2)", prefix, placement.rawValue]
            let publisher = try Program(programs, "bench", ["pubsub"] + words)
            let output = try Program(programs, "bench", ["pubsub-peer"] + words).output()
            _ = try publisher.output()
            table.add(
                group, "Subscription, \(placement.title)", try figures(output),
                goal: placement == .pinned ? "at most 1.15" : nil)
        }
    }

    private func fanOut(_ url: String, _ table: inout Table) throws {
        let group = "Fan-out to 1,000 subscribers of one process, TCP, µs a message"
        let floor = try figures(Program(programs, "baseline", ["fanout", url, "1000", "\(fanOuts)"]).output())
        table.add(group, "C, hiredis, one connection", floor, goal: nil)
        for placement in Placement.allCases {
            let prefix = "bench-\(UInt32.random(in: 0 ... .max))"
            let words = [url, "\(fanOuts)", prefix, placement.rawValue]
            let peer = try Program(programs, "bench", ["fanout-peer"] + words)
            let output = try Program(programs, "bench", ["fanout"] + words).output()
            _ = try peer.output()
            table.add(group, "1,000 Subscriptions, \(placement.title)", try figures(output), goal: nil)
        }
    }

    private func push(_ server: LocalRedis, _ table: inout Table) throws {
        let group = "64 tasks, one connection, LPUSH, TCP, commands/s"
        let words = [
            "-p", "\(server.port)", "-P", "64", "-c", "1", "-n", "\(pushes)", "--csv", "lpush", "bench:list", "xxx",
        ]
        let csv = try Program(nil, "redis-benchmark", words).output()
        guard let rate = csv.split(separator: "\n").last?.split(separator: ",").dropFirst().first,
            let floor = Double(rate.filter { $0 != "\"" })
        else { throw Failed("redis-benchmark said: \(csv)") }
        table.add(group, "redis-benchmark -P 64 -c 1", rate: floor, goal: nil)
        _ = try Program(nil, "redis-cli", ["-p", "\(server.port)", "DEL", "bench:list"]).output()
        for placement in Placement.allCases {
            let output = try Program(
                programs, "bench", ["pushes", server.url, "\(pushes)", "bench", placement.rawValue]
            ).output()
            guard let rate = Double(output) else { throw Failed("pushes said: \(output)") }
            table.add(group, "RedisClient, \(placement.title)", rate: rate, goal: "at least 0.5")
        }
    }

    private func figures(_ json: String) throws -> Figures {
        try JSONDecoder().decode(Figures.self, from: Data(json.utf8))
    }
}

/// A measured process.
private struct Program {
    private let process = Process()
    private let pipe = Pipe()

    /// - Parameter folder: where the program is; `nil` looks on the PATH.
    init(_ folder: URL?, _ name: String, _ words: [String]) throws {
        process.executableURL = folder?.appendingPathComponent(name) ?? URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = (folder == nil ? [name] : []) + words
        process.standardOutput = pipe
        try process.run()
    }

    func output() throws -> String {
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failed("\(process.arguments?.first ?? "") ended with \(process.terminationStatus)")
        }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
