import ArgumentParser
package import CommandLineTool
import CoordinationBase
import Foundation
import Hiredis
package import QueueListen

/// The `redisdc mail` commands.
struct Mail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Mailboxes: ordered messages that are kept until their reader acknowledges them.",
        subcommands: [
            MailSend.self, MailAsk.self, MailListen.self, MailAck.self, MailPeek.self, MailInspect.self,
            MailDelete.self,
        ]
    )
}

/// The options that the `mail` commands share, and a post office made from them.
struct MailOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @OptionGroup private var place: NamespaceOptions

    func withOffice(_ body: (PostOffice) async throws -> Void) async throws {
        try await global.withRedis { redis in
            var configuration = PostOfficeConfiguration()
            configuration.partitions = try await place.agreedMailPartitions(redis)
            // Long enough for a restart of Redis, short enough for a person who waits for the error.
            configuration.callTimeout = .seconds(5)
            try await withPostOffice(redis: redis, namespace: place.namespace, configuration: configuration, body)
        }
    }

    /// Parses a cursor.
    static func cursor(_ token: String?) throws -> Cursor? {
        guard let token else { return nil }
        guard let cursor = Cursor(token) else { throw Failure(.badData, "\"\(token)\" is not a cursor") }
        return cursor
    }
}

/// A message as JSON.
struct MessageReport: Encodable {
    var index: Int
    var type: String?
    var id: String
    var headers: [String: String]?
    /// `nil` if the body is not UTF-8 text.
    var body: String?
    /// The body in Base64, if it is not UTF-8 text.
    var body64: String?

    init(_ message: ReceivedMessage) {
        index = message.index
        type = message.type
        id = message.id
        headers = message.headers.isEmpty ? nil : message.headers
        body = String(validating: message.body, as: UTF8.self)
        if body == nil { body64 = Data(message.body).base64EncodedString() }
    }
}

extension QueueListenError: ExitError {
    package var exitStatus: ExitStatus {
        switch code {
        case .invalidArgument, .conflict, .unknownDevice, .wrongType, .unsupported, .undecodable, .failed: .badData
        case .mailboxFull, .tooManyScheduled, .superseded, .timedOut, .notDurable, .unfinished: .notAcquired
        case .connectionLost, .notConnected, .stopped, .outOfMemory: .unavailable
        case .notPermitted: .notPermitted
        case .cancelled: .interrupted
        default: .software
        }
    }
}
