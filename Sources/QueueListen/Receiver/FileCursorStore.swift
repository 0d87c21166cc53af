#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Stores a cursor in a file.
///
/// The file is replaced as a whole: a process that dies leaves the old cursor or the new one.
public struct FileCursorStore: CursorStore {
    /// The path of the file.
    public let path: String

    /// Creates a store. The file need not exist.
    ///
    /// - Parameter path: the path of a file in an existing directory.
    public init(path: String) { self.path = path }

    /// Reads the cursor; returns `nil` if the file does not exist.
    ///
    /// - Throws: the error of reading the file; `.undecodable` if it contains anything but a
    ///   cursor.
    public func load() async throws -> Cursor? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        let token = text.filter { !$0.isWhitespace }
        guard let cursor = Cursor(token) else {
            throw QueueListenError(
                .undecodable, "the file \(path) does not contain a cursor: remove it to start where the mailbox begins")
        }
        return cursor
    }

    /// Replaces the file.
    ///
    /// - Throws: the error of writing the file.
    public func save(_ cursor: Cursor) async throws {
        try Data("\(cursor)\n".utf8).write(to: URL(filePath: path), options: .atomic)
    }
}
