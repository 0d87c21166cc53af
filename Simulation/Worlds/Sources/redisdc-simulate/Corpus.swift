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

    init(_ showed: String, _ seed: UInt64, _ plan: World.Plan, _ alteration: AlterationOptions) {
        (self.showed, self.seed, self.plan) = (showed, seed, plan)
        (replace, by) = (alteration.replace, alteration.by)
    }

    /// Its line in a corpus.
    func line() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }

    /// Reads a corpus: a world on each line.
    static func all(in path: String) throws -> [KnownWorld] {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        return try text.split(separator: "\n").enumerated().map { number, line in
            do {
                return try JSONDecoder().decode(
                    KnownWorld.self, from: World.Plan.completed(Data(line.utf8), at: "plan"))
            } catch {
                throw ValidationError("\(path):\(number + 1): \(error)")
            }
        }
    }

    /// Runs it. Returns what is wrong, or `nil`.
    func failure() -> String? {
        let world = World(seed: seed, plan: plan, alteredScripts: { AlterationOptions.alter($0, replace, by) })
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
            print("seed \(world.seed), known because \(world.showed): \(failure)")
        }
        let seconds = String(format: "%.1f", Date().timeIntervalSince(begin))
        print("\(worlds.count) known worlds in \(seconds) s, \(failures) of them failed")
        if failures > 0 { throw ExitCode(1) }
    }
}

extension World.Plan {
    /// Adds what a plan of an earlier version lacks: the defaults.
    ///
    /// - Parameter key: where the plan is in the JSON; `nil` if it is all of it.
    static func completed(_ json: Data, at key: String? = nil) throws -> Data {
        func complete(_ object: Any?, _ defaults: Any) -> Any {
            guard let object = object as? [String: Any], let defaults = defaults as? [String: Any] else {
                return object ?? defaults
            }
            return defaults.merging(object) { complete($1, $0) }
        }
        let defaults = try JSONSerialization.jsonObject(with: JSONEncoder().encode(World.Plan()))
        var object = try JSONSerialization.jsonObject(with: json)
        if let key, var outer = object as? [String: Any] {
            outer[key] = complete(outer[key], defaults)
            object = outer
        } else {
            object = complete(object, defaults)
        }
        return try JSONSerialization.data(withJSONObject: object)
    }
}
