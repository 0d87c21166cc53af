import Foundation

/// A measured process. It reads lines from its standard input and exits when that ends (``ParentInput``), so a benchmark
/// that fails leaves no process running.
final class Program {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()
    private var unread = Data()

    /// Starts a program.
    ///
    /// - Parameter folder: The folder of the program; `nil` searches the PATH.
    init(_ folder: URL?, _ name: String, _ arguments: [String]) throws {
        process.executableURL = folder?.appendingPathComponent(name) ?? URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = (folder == nil ? [name] : []) + arguments
        process.standardOutput = output
        process.standardInput = input
        try process.run()
    }

    var processID: Int32 { process.processIdentifier }

    func writeLine(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8)) }

    /// Waits for the next line that the program prints and returns it.
    func line() throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread = Data(unread[(end + 1)...])
                return line
            }
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { throw BenchError("\(name) exited early") }
            unread += more
        }
    }

    /// Waits until the program exits and returns the rest of its output.
    func rest() throws -> String {
        let data = unread + output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchError("\(name) exited with \(process.terminationStatus)")
        }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Runs a program and returns its output.
    static func output(_ folder: URL?, _ name: String, _ arguments: [String]) throws -> String {
        try Program(folder, name, arguments).rest()
    }

    private var name: String { (process.arguments ?? []).prefix(2).joined(separator: " ") }
}
