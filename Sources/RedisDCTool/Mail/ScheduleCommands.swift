// The commands for sends that are due later: list and cancel.
import ArgumentParser
import CommandLineTool
import Foundation
import QueueListen

/// The `redisdc schedule` commands.
struct Schedule: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends to mailboxes that are due later, or recur: see redisdc mail send --after and --cron.",
        subcommands: [ScheduleList.self, ScheduleCancel.self])
}

/// The `redisdc schedule list` command.
struct ScheduleList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print the sends that are due later, or recur, the next one first."
    )
    .examples("redisdc schedule list --limit 10")
    @OptionGroup var mail: MailOptions
    @Option(help: "The maximum number of sends, 1 to 10,000.") var limit = 100

    private struct Report: Encodable {
        var id: String
        var time: String
        var recurrence: String?
    }

    func run() async throws {
        try await mail.withOffice { office in
            for send in try await office.scheduledSends(limit: limit) {
                let time = send.time.formatted(.iso8601)
                let recurrence = send.recurrence.map { "\($0)" }
                try mail.global.report(
                    "\(time)  \(send.id)" + (recurrence.map { "  (\($0))" } ?? ""),
                    Report(id: send.id, time: time, recurrence: recurrence))
            }
        }
    }
}

/// The `redisdc schedule cancel` command.
struct ScheduleCancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel a send that is due later, or a recurring send."
    )
    .examples("redisdc schedule cancel reminder-7")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The id of the send.") var id: String

    private struct Report: Encodable {
        var id: String
        var cancelled: Bool
    }

    func run() async throws {
        try await mail.withOffice { office in
            guard try await office.cancelScheduledSend(id) else {
                throw Failure(.badData, "no send \"\(id)\" waits: it is being sent, was sent, or was never scheduled")
            }
            try mail.global.report("cancelled \(id)", Report(id: id, cancelled: true))
        }
    }
}
