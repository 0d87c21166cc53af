import ArgumentParser
import Foundation
import Hiredis
import QueueListen

struct Mail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Mailboxes: messages in order, kept until their readers have acknowledged them.",
        subcommands: [
            MailSend.self, MailListen.self, MailAck.self, MailPeek.self, MailInspect.self, MailDelete.self,
        ]
    )
}

/// The options of all commands for mailboxes: a namespace, and a post office in it.
struct MailOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Option(help: "Separates an application's mailboxes from those of others in the same Redis.")
    var namespace = "default"

    @Option(help: "The number of partitions of the namespace. (default: the number that Redis has stored, else 1)")
    var partitions: Int?

    /// Runs `body` with a post office.
    func withOffice(_ body: (PostOffice) async throws -> Void) async throws {
        try await global.withRedis { redis in
            var configuration = PostOfficeConfiguration()
            configuration.partitions = try await agreedPartitions(redis)
            // Long enough for a restart of Redis, short enough for a person who waits.
            configuration.callTimeout = .seconds(5)
            try await withPostOffice(redis: redis, namespace: namespace, configuration: configuration, body)
        }
    }

    /// The given number of partitions, or the stored one.
    private func agreedPartitions(_ redis: RedisClient) async throws -> Int {
        if let partitions { return partitions }
        let reply = try await redis.send("HGET", .string("ql:{\(namespace):0}:meta"), "partitions")
        return reply.string.flatMap { Int($0) } ?? 1
    }

    /// Reads a cursor's token.
    static func cursor(_ token: String?) throws -> Cursor? {
        guard let token else { return nil }
        guard let cursor = Cursor(token) else {
            throw Failure(.badData, "\"\(token)\" is not a cursor: pass one that listen has printed")
        }
        return cursor
    }
}

/// A message as the commands print it.
struct MessageReport: Encodable {
    var index: Int
    var type: String?
    var id: String
    var headers: [String: String]?
    /// The body as text. A body that is not UTF-8 is printed as `body64`, in Base64.
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
