import Foundation
import QueueListen

/// One device of one recipient: writes each message into its file, once and in order, until it has the last one.
///
/// The file is what it goes by when it is started again after a crash: a message and the cursor behind it are one line, so
/// a device that is killed at any moment misses nothing and writes nothing twice.
func receive(_ name: String, device: String, upTo last: Int, _ office: PostOffice) async throws {
    let file = try OutputFile(path: "\(name)-\(device).txt")
    let mailbox = try office.mailbox(name)
    // From now on everything is kept for this device too, until it has it.
    if file.cursor == nil { _ = try await mailbox.listen(device: device, timeout: .zero) }
    if file.cursor?.index ?? 0 >= last { return }
    for try await event in mailbox.messages(after: file.cursor, device: device) {
        switch event {
        case .message(let message):
            try file.append("\(message.index) \(message.text) \(message.cursor)")
            guard message.index >= last else { continue }
            try await mailbox.acknowledge(message.cursor, device: device)
            return
        case .gap(let gap): fatalError("messages were lost: \(gap)")
        }
    }
}

/// Lines, each with a cursor at its end.
struct OutputFile {
    /// The last whole line's, when the file was opened.
    let cursor: Cursor?
    private let handle: FileHandle

    init(path: String) throws {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        // A line that was cut off by a kill is none.
        let whole = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        try whole.map { $0 + "\n" }.joined().write(toFile: path, atomically: true, encoding: .utf8)
        cursor = whole.last?.split(separator: " ").last.flatMap { Cursor(String($0)) }
        handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.seekToEnd()
    }

    func append(_ line: String) throws { try handle.write(contentsOf: Data("\(line)\n".utf8)) }
}
