import Foundation

/// The file with everything that a server has printed, over all its restarts.
struct ServerLog: Sendable {
    let path: String

    /// Bytes written so far.
    var size: Int { FileManager.default.contents(atPath: self.path)?.count ?? 0 }

    /// What was written after the first bytes.
    func text(from start: Int = 0) -> String {
        String(decoding: (FileManager.default.contents(atPath: self.path) ?? Data()).dropFirst(start), as: UTF8.self)
    }

    /// The last lines of that.
    func tail(from start: Int) -> String {
        self.text(from: start).split(separator: "\n").suffix(12).joined(separator: "\n")
    }
}
