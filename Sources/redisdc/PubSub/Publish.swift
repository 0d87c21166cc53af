import ArgumentParser
import Hiredis

struct Publish: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Publish a message and print how many receive it.")
    @OptionGroup var global: GlobalOptions
    @Argument var channel: String
    @Argument var message: String

    private struct Report: Encodable {
        var channel: String
        var receivers: Int
    }

    func run() async throws {
        try await global.withRedis { redis in
            let receivers = try await redis.publish(.string(message), to: .channel(channel))
            try global.report("\(receivers)", Report(channel: channel, receivers: receivers))
        }
    }
}
