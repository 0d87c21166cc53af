import ArgumentParser
import CommandLineTool
import Foundation
import GameServices
import Hiredis

/// The `redisdc presence` commands.
struct PresenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "presence",
        abstract: "Presence: objects that exist as long as their owners are connected.",
        subcommands: [PresenceSnapshotCommand.self, PresenceWatch.self, PresencePut.self])
}

/// The options that the `presence` commands share, and a bucket made from them.
struct PresenceOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions
    @Option(help: "The namespace. It separates applications that share a Redis server.") var namespace = "default"
    @Argument(help: "The bucket's name.") var bucket: String

    func withBucket(ttl: Duration = .seconds(15), _ body: (PresenceBucket) async throws -> Void) async throws {
        try await global.withRedis { redis in
            var configuration = PresenceConfiguration()
            configuration.ttl = ttl
            // Long enough for a restart of Redis, short enough for a person who waits for the error.
            configuration.callTimeout = .seconds(5)
            try await withPresence(redis: redis, namespace: namespace, configuration: configuration) { presence in
                try await body(try presence.bucket(bucket))
            }
        }
    }
}

/// The JSON output of the commands.
struct PresenceReport: Encodable {
    var event: String
    var key: String?
    var user: String?
    var client: String?
    /// `nil` if the value is not UTF-8 text.
    var value: String?
    /// The value in Base64, if it is not UTF-8 text.
    var value64: String?
    var version: Int?
    var reason: String?
    var objects: Int?

    init(_ event: String) { self.event = event }

    init(_ event: String, _ object: PresenceObject) {
        self.event = event
        (key, user, client) = (object.key, object.user, object.client)
        (value, version) = (String(validating: object.value, as: UTF8.self), object.version)
        if value == nil { value64 = Data(object.value).base64EncodedString() }
    }
}

extension PresenceObject {
    /// The object in one line, with the bytes of its value.
    var line: [UInt8] { Array("\(key)  \(user)\(client.map { "/\($0)" } ?? "")  ".utf8) + value }
}
