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

/// Sends push notifications to players whose pages are closed. An application has one of its own.
protocol PushSender: Sendable {
    /// - Parameter token: of the player's device.
    func send(_ text: String, to token: String) async throws
}

/// Writes push notifications to the log.
struct LoggingPushSender: PushSender {
    let logger: Logger

    func send(_ text: String, to token: String) async throws {
        logger.notice("push", metadata: ["to": "\(token)", "text": "\(text)"])
    }
}

/// Writes each mail or push notification to a file in a folder, for tests.
struct FolderSender: MailSender, PushSender {
    let folder: String

    func send(_ text: String, to address: String) async throws {
        try Data("To: \(address)\n\n\(text)\n".utf8).write(
            to: URL(fileURLWithPath: folder).appendingPathComponent("\(UUID().uuidString).txt"), options: .atomic)
    }
}
