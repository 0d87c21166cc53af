import ArgumentParser
import Foundation
import Hiredis
import QueueListen

struct Mail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Mailboxes: messages in order, kept until their reader has proven to have them.",
        subcommands: [
            MailSend.self, MailListen.self, MailAck.self, MailPeek.self, MailInspect.self, MailDelete.self,
        ]
    )
}

/// What these commands share: a namespace, and a post office in it.
struct MailOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Option(help: "Sets an application's mailboxes apart from others' in the same Redis.")
    var namespace = "default"

    @Option(help: "Into how many parts the namespace is divided. (default: what Redis says it has, else 1)")
    var partitions: Int?

    func withOffice(_ body: (PostOffice) async throws -> Void) async throws {
        try await global.withRedis { redis in
            var configuration = PostOfficeConfiguration()
            configuration.partitions = try await agreedPartitions(redis)
            // A person waits: long enough for a restart, short enough to be told.
            configuration.callTimeout = .seconds(5)
            try await withPostOffice(redis: redis, namespace: namespace, configuration: configuration, body)
        }
    }

    private func agreedPartitions(_ redis: RedisClient) async throws -> Int {
        if let partitions { return partitions }
        let reply = try await redis.send("HGET", .string("ql:{\(namespace):0}:meta"), "partitions")
        return reply.string.flatMap { Int($0) } ?? 1
    }

    static func cursor(_ token: String?) throws -> Cursor? {
        guard let token else { return nil }
        guard let cursor = Cursor(token) else { throw Failure(.badData, "\"\(token)\" is no cursor") }
        return cursor
    }
}

/// A message as the commands print it.
struct MessageReport: Encodable {
    var index: Int
    var type: String?
    var id: String
    var headers: [String: String]?
    /// Text; bytes that are not UTF-8 are printed as `body64`.
    var body: String?
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

extension Status {
    init(_ code: QueueListenError.Code) {
        switch code {
        case .invalidArgument, .conflict, .wrongType, .unsupported, .undecodable: self = .badData
        case .mailboxFull, .superseded, .notDurable, .unfinished: self = .notAcquired
        case .connectionLost, .notConnected, .stopped, .outOfMemory: self = .unavailable
        case .notPermitted: self = .notPermitted
        case .cancelled: self = .interrupted
        default: self = .software
        }
    }
}
