import ArgumentParser
import CommandLineTool
import Hiredis

/// The `redisdc publish` command.
struct Publish: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Publish a message and print the number of receivers.")
        .examples("redisdc publish match:7 'kick-off'")
    @OptionGroup var global: GlobalOptions
    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The message, which may be any bytes.") var message: ByteArgument

    private struct Report: Encodable {
        var channel: String
        var receivers: Int
    }

    func run() async throws {
        try await global.withRedis { redis in
            let receivers = try await redis.publish(.bytes(message.bytes), to: .channel(channel))
            try global.report("\(receivers)", Report(channel: channel, receivers: receivers))
        }
    }
}
