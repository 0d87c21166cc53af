import Foundation
import Logging

/// Sends mail to players. An application has one of its own.
protocol MailSender: Sendable {
    func send(_ text: String, to address: String) async throws
}

/// Writes mail to the log, for experiments.
struct LoggingMailSender: MailSender {
    let logger: Logger

    func send(_ text: String, to address: String) async throws {
        logger.notice("mail", metadata: ["to": "\(address)", "text": "\(text)"])
    }
}

/// Writes each mail to a file in a folder, for tests.
struct FolderMailSender: MailSender {
    let folder: String

    func send(_ text: String, to address: String) async throws {
        try Data("To: \(address)\n\n\(text)\n".utf8).write(
            to: URL(fileURLWithPath: folder).appendingPathComponent("\(UUID().uuidString).txt"))
    }
}
