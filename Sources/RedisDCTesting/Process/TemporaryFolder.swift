import ChildProcesses
import Foundation

/// A folder that only this user can enter, with a path that is short enough for a Unix socket in
/// it.
struct TemporaryFolder: Sendable {
    let path: String

    /// Creates a folder in the user's temporary folder, or in `/tmp` if that path is long.
    ///
    /// A Unix socket's path is limited to 107 bytes on Linux and 103 on macOS, and `TMPDIR` can
    /// have any length.
    init(prefix: String) throws {
        let usual = NSTemporaryDirectory()
        let parent = usual.utf8.count <= 60 ? usual : "/tmp/"
        var template = Array("\(parent)\(parent.hasSuffix("/") ? "" : "/")\(prefix)-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!).map { String(cString: $0) } }
        guard let made else {
            throw ChildProcess.Failure(action: "make a folder in \(parent)", code: errno)
        }
        self.path = made
    }

    func file(_ name: String) -> String { "\(self.path)/\(name)" }

    func has(_ name: String) -> Bool { FileManager.default.fileExists(atPath: self.file(name)) }

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.file(name)))
    }

    /// Removes a file. It has no effect if the file does not exist.
    func remove(_ name: String) {
        try? FileManager.default.removeItem(atPath: self.file(name))
    }

    /// Removes the folder and its contents. It has no effect if the folder does not exist.
    func remove() {
        try? FileManager.default.removeItem(atPath: self.path)
    }
}
