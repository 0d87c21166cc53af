import Foundation

/// A measured process. What it is told comes on its standard input, and with the end of that it ends (``Orders``): a
/// benchmark that fails in the middle leaves nobody behind.
final class Program {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()
    private var unread = Data()

    /// - Parameter folder: where the program is; `nil` looks on the PATH.
    init(_ folder: URL?, _ name: String, _ words: [String]) throws {
        process.executableURL = folder?.appendingPathComponent(name) ?? URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = (folder == nil ? [name] : []) + words
        process.standardOutput = output
        process.standardInput = input
        try process.run()
    }

    var processID: Int32 { process.processIdentifier }

    func tell(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8)) }

    /// The next line that it prints.
    func line() throws -> String {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread = Data(unread[(end + 1)...])
                return line
            }
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { throw Failed("\(name) ended early") }
            unread += more
        }
    }

    /// The rest of what it prints until it ends.
    func rest() throws -> String {
        let data = unread + output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed("\(name) ended with \(process.terminationStatus)") }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Runs it and returns all that it prints.
    static func output(_ folder: URL?, _ name: String, _ words: [String]) throws -> String {
        try Program(folder, name, words).rest()
    }

    private var name: String { (process.arguments ?? []).prefix(2).joined(separator: " ") }
}
