import ArgumentParser
import Hiredis

struct Subscribe: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print messages as they come, until interrupted.",
        discussion:
            "Goes on through breaks of the connection, and says on a line of its own where messages may be missing.")
    @OptionGroup var global: GlobalOptions
    @Flag(help: "The names are patterns such as match:*.") var pattern = false
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
                            case .overflow(let missed): "\(missed) came too fast"
                            }
                        try global.report("-- messages may be missing: \(reason)", Report(gap: reason))
                    }
                }
            }
        }
    }
}
