// An operation: one of the project's scripts with keys, arguments and a time.

import Foundation
import SimulatedRedis

/// A call of a script, or a command.
struct Operation: CustomStringConvertible {
    /// The scripts and commands that are executed.
    enum Kind {
        /// A script of the project.
        case script(String)
        /// A script that scans: it is called again with the cursor of its reply, until that is 0.
        case scan(String)
        /// A command by which somebody damages a key.
        case command
    }
    var kind: Kind
    var keys: [Bytes] = []
    var arguments: [Bytes]
    /// The time in microseconds that TIME replies to the script.
    var time: Int64

    var name: String {
        switch kind {
        case .script(let name), .scan(let name): name
        case .command: arguments.first?.text ?? ""
        }
    }

    var description: String {
        let words = (keys + ["|"] + arguments).map { "\"\($0)\"" }
        return "\(time) \(name) " + words.joined(separator: " ")
    }

    /// The command that executes it on a server that has loaded the script.
    func command(_ scripts: ScriptLibrary) -> [Bytes] {
        if case .command = kind { return arguments }
        let clock = Bytes("\(time / 1_000_000) \(time % 1_000_000)")
        return ["EVALSHA", scripts.digest(name), Bytes(Int64(keys.count))] + keys + arguments + [clock]
    }
}

/// The scripts of the project, changed so that they take the time from their last argument.
struct ScriptLibrary {
    private(set) var texts: [String: Bytes] = [:]
    private var digests: [String: Bytes] = [:]

    /// The folders with scripts. The name of a script has that of its module in front.
    static let modules = [
        "engine": "Sources/RedisDC/Scripts", "mail": "Sources/QueueListen/Scripts",
        "services": "Sources/GameServices/Scripts", "gateway": "Gateway/Sources/Gateway/Scripts",
        "arcade": "Examples/Arcade/Sources/arcade/Scripts",
    ]

    static var root: URL {
        var folder = URL(filePath: #filePath)
        for _ in 0..<5 { folder.deleteLastPathComponent() }
        return folder
    }

    init() throws {
        for (module, path) in Self.modules {
            let folder = Self.root.appending(path: path)
            for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
                let text = try String(contentsOf: file, encoding: .utf8)
                let name = module + "/" + file.deletingPathExtension().lastPathComponent
                texts[name] = Bytes(Self.withTime(text))
            }
        }
    }

    /// Replaces the call of TIME. The other arguments are as they were, and lines keep their numbers.
    private static func withTime(_ text: String) -> String {
        guard text.contains("call('TIME')") else { return "table.remove(ARGV) " + text.drop { $0 != "\n" } }
        let time = "({string.match(current_time, '(%d+) (%d+)')})"
        let changed = text.replacingOccurrences(of: "redis.call('TIME')", with: time)
            .replacingOccurrences(of: "call('TIME')", with: time)
        return "local current_time = table.remove(ARGV) " + changed.drop { $0 != "\n" }
    }

    func digest(_ name: String) -> Bytes { digests[name] ?? "unknown" }

    /// Loads all scripts into a server. Returns their digests.
    mutating func load(_ execute: ([Bytes]) throws -> Reply) throws -> [String: Reply] {
        var replies: [String: Reply] = [:]
        for (name, text) in texts {
            replies[name] = try execute(["SCRIPT", "LOAD", text])
            digests[name] = replies[name]?.bytes
        }
        return replies
    }
}
