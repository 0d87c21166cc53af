import Foundation

/// A folder that only this user may enter, with a path short enough for a Unix socket in it.
struct TemporaryFolder: Sendable {
    let path: String

    /// Makes a new folder in the user's temporary folder, or in `/tmp` if that one's path is long.
    ///
    /// `sockaddr_un` takes 107 bytes on Linux and 103 on macOS, and `TMPDIR` may be anything.
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

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.file(name)))
    }

    /// Removes the folder and all that is in it; fine if it is gone already.
    func remove() {
        try? FileManager.default.removeItem(atPath: self.path)
    }
}
