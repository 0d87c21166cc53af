// The worlds that once showed a fault, which run again so that it does not come back.
import ArgumentParser
import Foundation
import World

/// A world that once showed a fault: a line of the corpus, in JSON.
struct KnownWorld: Codable {
    /// What it once showed.
    var showed: String
    var seed: UInt64
    var plan: World.Plan
    /// A text of the scripts, on one line, without which this world must break a promise; `nil` if it must keep them.
    var replace: String?
    /// See ``replace``.
    var by: String?

    /// Reads a corpus: a world on each line.
    static func all(in path: String) throws -> [KnownWorld] {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let decoder = JSONDecoder()
        return try text.split(separator: "\n").enumerated().map { number, line in
            do {
                return try decoder.decode(KnownWorld.self, from: Data(line.utf8))
            } catch {
                throw ValidationError("\(path):\(number + 1): \(error)")
            }
        }
    }

    /// Runs it. Returns what is wrong, or `nil`.
    func failure() -> String? {
        let world = World(seed: seed, plan: plan, alteredScripts: Simulate.alteration(replace: replace, by: by))
        world.run()
        if replace == nil { return world.violations.first }
        return world.violations.isEmpty ? "the altered scripts break no promise" : nil
    }
}

extension Simulate {
    /// Runs all worlds of a corpus.
    static func runCorpus(_ path: String) throws {
        let worlds = try KnownWorld.all(in: path)
        guard !worlds.isEmpty else { throw ValidationError("\(path) has no worlds") }
        let begin = Date()
        var failures = 0
        for world in worlds {
            guard let failure = world.failure() else { continue }
            failures += 1
            print("seed \(world.seed), which once showed that \(world.showed): \(failure)")
        }
        let seconds = String(format: "%.1f", Date().timeIntervalSince(begin))
        print("\(worlds.count) known worlds in \(seconds) s, \(failures) of them failed")
        if failures > 0 { throw ExitCode(1) }
    }

    /// A function that replaces a text of the scripts, on one line and without comments.
    static func alteration(replace: String?, by: String?) -> (String) -> String {
        guard let replace, let by else { return { $0 } }
        return { text in
            let code = text.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
            return code.split(separator: " ").joined(separator: " ").replacingOccurrences(of: replace, with: by)
        }
    }
}
