// The commands for one mailbox besides send and listen: ack, peek, inspect and delete.
import ArgumentParser
import CommandLineTool
import Foundation
import QueueListen

/// The `redisdc mail ack` command.
struct MailAck: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ack", abstract: "Acknowledge all messages up to a cursor."
    )
    .examples("redisdc mail ack alice \"$CURSOR\" --device phone")
    @OptionGroup var mail: MailOptions
    @Option(help: "The device that has received the messages.") var device = Mailbox.defaultDevice
    @Argument(help: "The mailbox's name.") var name: String
    @Argument(help: "A cursor that listen has printed.") var cursor: String

    private struct Report: Encodable {
        var name: String
        var acknowledged: Bool
    }

    func run() async throws {
        let cursor = try MailOptions.cursor(cursor)!
        try await mail.withOffice { office in
            guard try await office.mailbox(name).acknowledge(cursor, device: device) else {
                throw Failure(
                    .badData,
                    "cannot acknowledge in \"\(name)\": the cursor does not belong to the mailbox in its present state")
            }
            try mail.global.report("acknowledged \(cursor.index)", Report(name: name, acknowledged: true))
        }
    }
}

/// The `redisdc mail peek` command.
struct MailPeek: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peek", abstract: "Print messages without acknowledging them."
    )
    .examples("redisdc mail peek alice --limit 10")
    @OptionGroup var mail: MailOptions
    @Option(help: "Print the messages after this index.") var after = 0
    @Option(help: "The maximum number of messages, 1 to 10,000.") var limit = 100
    @Argument(help: "The mailbox's name.") var name: String

    func run() async throws {
        try await mail.withOffice { office in
            for message in try await office.mailbox(name).peek(after: after, limit: limit) {
                let prefix = "\(message.index)  \(message.type ?? "-")  "
                try mail.global.report(bytes: Array(prefix.utf8) + message.body, MessageReport(message))
            }
        }
    }
}

/// The `redisdc mail inspect` command.
struct MailInspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Show the size of a mailbox and the acknowledged position of each device."
    )
    .examples("redisdc mail inspect alice")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String

    private struct Report: Encodable {
        struct Device: Encodable {
            var name: String
            var acknowledged: Int
            var cursor: String
            var lastSeen: String
        }
        var name: String
        var messages: Int
        var bytes: Int
        var first: Int
        var last: Int
        var listening: Int
        var devices: [Device]
    }

    func run() async throws {
        try await mail.withOffice { office in
            guard let found = try await office.mailbox(name).inspect() else {
                throw Failure(.badData, "there is no mailbox \"\(name)\"")
            }
            let devices = found.devices.sorted { $0.name < $1.name }
            let range = found.count == 0 ? ", the last was \(found.last)" : ", \(found.first) to \(found.last)"
            let lines =
                [
                    "\(name): \(found.count) messages (\(found.bytes) bytes)\(found.last == 0 ? "" : range)",
                    "listening processes: \(found.listeningProcesses)",
                ]
                + devices.map {
                    "device \($0.name): acknowledged \($0.acknowledged.index), last seen \($0.lastSeen.formatted(.iso8601))"
                }
            try mail.global.report(
                lines.joined(separator: "\n"),
                Report(
                    name: name, messages: found.count, bytes: found.bytes, first: found.first, last: found.last,
                    listening: found.listeningProcesses,
                    devices: devices.map {
                        Report.Device(
                            name: $0.name, acknowledged: $0.acknowledged.index, cursor: "\($0.acknowledged)",
                            lastSeen: $0.lastSeen.formatted(.iso8601))
                    }))
        }
    }
}

/// The `redisdc mail delete` command.
struct MailDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a mailbox with all its messages."
    )
    .examples("redisdc mail delete alice")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String

    private struct Report: Encodable {
        var name: String
        var deleted: Bool
        var messages: Int
    }

    func run() async throws {
        try await mail.withOffice { office in
            guard let count = try await office.mailbox(name).delete() else {
                throw Failure(.badData, "there is no mailbox \"\(name)\"")
            }
            try mail.global.report(
                "deleted, with \(count) messages", Report(name: name, deleted: true, messages: count))
        }
    }
}
