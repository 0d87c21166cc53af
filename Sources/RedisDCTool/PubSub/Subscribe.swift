import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis

/// The `redisdc subscribe` command.
struct Subscribe: ReaderBoundCommand {
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
        /// `nil` if the message is not UTF-8 text.
        var message: String?
        /// The message in Base64, if it is not UTF-8 text.
        var message64: String?
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
                        let prefix = channels.count > 1 || pattern ? "\(message.channel): " : ""
                        let text = String(validating: message.payload, as: UTF8.self)
                        try global.report(
                            bytes: Array(prefix.utf8) + message.payload,
                            Report(
                                channel: message.channel, message: text,
                                message64: text == nil ? Data(message.payload).base64EncodedString() : nil))
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
