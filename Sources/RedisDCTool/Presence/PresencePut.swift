import ArgumentParser
import CommandLineTool
import GameServices

/// The `redisdc presence put` command.
struct PresencePut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put", abstract: "Connect a client, put an object, and stay connected until interrupted.",
        discussion: """
            After an interruption the object leaves when its grace period has passed. When redisdc is killed, the object \
            leaves after the TTL. Exit status: 74 the session was lost, 75 the key has an object of another user.
            """
    )
    .examples("redisdc presence put lobby alice ready --user alice --grace 10")
    @OptionGroup var presence: PresenceOptions
    @Argument(help: "The key of the object.") var key: String
    @Argument(help: "Its value, which may be any bytes.") var value: ByteArgument
    @Option(help: "The user who owns the object.") var user: String
    @Option(help: "The user's client.") var client = "redisdc"
    @Flag(help: "The object stays until the user's last client is gone, not only this one.") var ofUser = false
    @Option(help: "Seconds for which the object stays after that, with decimals.") var grace = 0.0
    @Option(help: "Seconds after the last heartbeat until Redis ends the session. At least 1.") var ttl = 15.0

    func validate() throws {
        guard grace >= 0, grace <= 3600 else { throw ValidationError("--grace must be 0 to 3600 seconds") }
        guard ttl >= 1, ttl <= 3600 else { throw ValidationError("--ttl must be 1 to 3600 seconds") }
    }

    func run() async throws {
        try await presence.withBucket(ttl: .seconds(ttl)) { bucket in
            let losses = try await bucket.losses()
            let owner = try await bucket.connect(user: user, client: client)
            let version = try await bucket.put(
                key, value.bytes, owner: owner, scope: ofUser ? .user : .client, grace: .seconds(grace))
            var report = PresenceReport("put")
            (report.key, report.user, report.version) = (key, user, version)
            try presence.global.report("put \(key), version \(version)", report)
            for await loss in losses {
                throw Failure(.lost, "lost the session in bucket \"\(bucket.name)\": \(loss.cause)")
            }
            // Interrupted: presence ends the session in order.
        }
    }
}
