import ArgumentParser
import CommandLineTool
import Hiredis

/// The `redisdc subscribe` command.
struct Subscribe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print messages as they arrive, until interrupted.",
        discussion:
            "Reconnects when the connection breaks, and prints a line where messages may be missing."
    )
    .examples("redisdc subscribe --pattern 'match:*'")
    @OptionGroup var global: GlobalOptions
    @Flag(help: "Treat the names as patterns such as match:*.") var pattern = false
    @Argument(help: "Channels or patterns.") var channels: [String]

    private struct Report: Encodable {
        var channel: String?
        var message: String?
        var gap: String?
        var subscribed: [String]?
    }

    func run() async throws {
        let topics = channels.map { SubscriptionTopic(pattern ? .pattern : .channel, $0) }
        try await global.withRedis { redis in
            try await redis.withSubscription(to: topics) { events in
                if global.json { try global.report("", Report(subscribed: channels)) }
                for try await event in events {
                    switch event {
                    case .message(let message):
                        try global.report(
                            channels.count > 1 || pattern ? "\(message.channel): \(message.text)" : message.text,
                            Report(channel: message.channel, message: message.text))
                    case .gap(let gap):
                        let reason =
                            switch gap {
                            case .reconnected: "the connection broke"
                            case .overflow(let missed): "\(missed) messages arrived faster than they were printed"
                            }
                        try global.report("-- messages may be missing: \(reason)", Report(gap: reason))
                    }
                }
            }
        }
    }
}
