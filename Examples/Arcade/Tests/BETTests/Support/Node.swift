import Foundation
import Testing

/// Node.js, which runs `bet.js` for the tests.
enum Node {
    /// Whether `node` is on the `PATH` and is recent enough for `bet.js`.
    static let isInstalled: Bool = {
        let check = "process.exit(Number(process.versions.node.split('.')[0]) >= 20 ? 0 : 1)"
        return (try? run(["-e", check], output: .nullDevice)) == 0
    }()

    /// The reason for which a test is skipped without it.
    static let requirement: Comment = "bet.js is not compared, because Node.js 20 or newer is not installed"

    /// Returns the outcomes of cases in JavaScript.
    static func outcomes(of cases: [Case]) throws -> [Outcome] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "bet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Files, because a process that writes before it has read everything blocks on two pipes.
        let input = folder.appending(path: "cases")
        let output = folder.appending(path: "outcomes")
        let lines = try cases.map { try JSONEncoder().encode($0) + Data("\n".utf8) }
        try Data(lines.joined()).write(to: input)
        try Data().write(to: output)

        let script = URL(filePath: #filePath).appending(path: "../../../Web/evaluate.js").standardized
        let status = try run([script.path, input.path], output: FileHandle(forWritingTo: output))
        guard status == 0 else { throw Failure(description: "evaluate.js ended with status \(status)") }
        return try Data(contentsOf: output).split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(Outcome.self, from: $0)
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static func run(_ arguments: [String], output: FileHandle) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["node"] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}
