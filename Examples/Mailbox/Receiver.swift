import Foundation
import QueueListen

/// Receives as one device of a recipient: writes each message to a file, once and in order, until
/// the last one.
///
/// After a crash it continues from the file. A message and the cursor after it are one line, so a
/// device that is killed at any moment loses no message and writes none twice.
func receive(_ name: String, device: String, upTo last: Int, _ office: PostOffice) async throws {
    let file = try OutputFile(path: "\(name)-\(device).txt")
    let mailbox = try office.mailbox(name)
    // Registers the device: from now on messages are kept until it has acknowledged them.
    if file.cursor == nil { _ = try await mailbox.listen(device: device, timeout: .zero) }
    if file.cursor?.index ?? 0 >= last { return }
    for try await event in mailbox.messages(after: file.cursor, device: device) {
        switch event {
        case .message(let message):
            try file.append("\(message.index) \(message.text) \(message.cursor)")
            guard message.index >= last else { continue }
            try await mailbox.acknowledge(message.cursor, device: device)
            return
        case .gap(let gap): fatalError("messages of \"\(name)\" were lost: \(gap)")
        }
    }
}

/// A file of lines, each with a cursor at its end.
struct OutputFile {
    /// The cursor of the last complete line when the file was opened; `nil` if there was none.
    let cursor: Cursor?
    private let handle: FileHandle

    init(path: String) throws {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        // A line that was cut off by a kill is dropped.
        let whole = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        try whole.map { $0 + "\n" }.joined().write(toFile: path, atomically: true, encoding: .utf8)
        cursor = whole.last?.split(separator: " ").last.flatMap { Cursor(String($0)) }
        handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seekToEnd()
    }

    func append(_ line: String) throws { try handle.write(contentsOf: Data("\(line)\n".utf8)) }
}
