import ArgumentParser
import CommandLineTool
import QueueListen

/// The `redisdc mail listen` command.
struct MailListen: ReaderBoundCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Print the messages after a cursor, or wait for new ones.",
        discussion: """
            Prints a cursor after the messages. Passing it to the next listen, or to ack, acknowledges the messages; until \
            then they are delivered again. Without --after, starts at the device's acknowledged position.

            With --follow, acknowledges what it has printed and continues until interrupted, or until no message has \
            arrived for --timeout seconds. Messages that could not be written are not acknowledged. If the output is a \
            pipe, messages are acknowledged when its reader has taken them (on Linux): a reader that is slow, stops or \
            dies loses only what it has read. With --limit 1, each message is acknowledged before the next is printed.
            """
    )
    .examples("redisdc mail listen alice --device phone --follow")
    @OptionGroup var mail: MailOptions
    @Option(help: "The device that reads. Every device receives all messages at its own pace.") var device = Mailbox
        .defaultDevice
    @Option(help: ArgumentHelp("A cursor that listen has printed.", valueName: "cursor")) var after: String?
    @Option(help: "The maximum number of messages per page, 1 to 10,000.") var limit = 1000
    @OptionGroup var timeout: TimeoutOption
    @Flag(help: "Continue, and acknowledge the printed messages.") var follow = false
    @Argument(help: "The mailbox's name.") var name: String

    private struct Report: Encodable {
        var status: String
        var cursor: String
        var first: Int?
        var skipped: Int?
    }

    func run() async throws {
        var cursor = try MailOptions.cursor(after)
        try await mail.withOffice { office in
            let mailbox = try office.mailbox(name)
            while true {
                let delivery: Delivery
                do {
                    delivery = try await mailbox.listen(
                        after: cursor, device: device, limit: limit, timeout: timeout.duration)
                } catch let error as QueueListenError {
                    if follow, StandardOutput.failure != nil, let cursor {
                        // The reader has taken everything before it went, and the call may not have reached the server.
                        _ = await Task { try? await mailbox.acknowledge(cursor, device: device) }.value
                    }
                    guard follow, error.code == .connectionLost || error.code == .notConnected else { throw error }
                    // With --follow, a lost connection is retried. An attempt lasts up to the timeout.
                    continue
                }
                try show(delivery)
                // The next listen acknowledges it.
                if follow { try await StandardOutput.untilRead() }
                cursor = delivery.cursor
                switch delivery.status {
                case .timedOut: throw Failure(.notAcquired, "timed out: no new message in \"\(name)\"")
                case .superseded:
                    throw Failure(.notAcquired, "another process listens to \"\(name)\" as device \"\(device)\"")
                default: if !follow { return }
                }
            }
        }
    }

    private func show(_ delivery: Delivery) throws {
        for message in delivery.messages { try mail.global.report(bytes: message.body, MessageReport(message)) }
        let skipped = delivery.skipped > 0 ? delivery.skipped : nil
        let (status, first, note): (String, Int?, String) =
            switch delivery.status {
            case .messages: ("messages", nil, "")
            case .timedOut: ("timedOut", nil, "")
            case .reset: ("reset", nil, "the mailbox was lost or deleted; ")
            case .forked: ("forked", nil, "the server has lost the latest messages, some may be delivered again; ")
            case .truncated(let first): ("truncated", first, "messages before \(first) are gone; ")
            case .superseded: ("superseded", nil, "")
            }
        if case .messages = delivery.status, follow, !mail.global.json { return }
        try mail.global.report(
            "-- \(note)cursor \(delivery.cursor)",
            Report(status: status, cursor: "\(delivery.cursor)", first: first, skipped: skipped))
    }
}
