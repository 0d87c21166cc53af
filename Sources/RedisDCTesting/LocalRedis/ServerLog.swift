import Foundation

/// The file with the output of a server since its first start.
struct ServerLog: Sendable {
    let path: String

    /// The size of the file in bytes.
    var size: Int { FileManager.default.contents(atPath: self.path)?.count ?? 0 }

    /// Returns the text after the first `start` bytes.
    func text(from start: Int = 0) -> String {
        String(decoding: (FileManager.default.contents(atPath: self.path) ?? Data()).dropFirst(start), as: UTF8.self)
    }

    /// Returns the last 12 lines of the text after the first `start` bytes.
    func tail(from start: Int) -> String {
        self.text(from: start).split(separator: "\n").suffix(12).joined(separator: "\n")
    }
}
