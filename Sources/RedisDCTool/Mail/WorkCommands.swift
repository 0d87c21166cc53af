// The commands for the jobs of mailboxes that workers share: list, show, retry, cancel, pause and resume. See also WorkRun.
import ArgumentParser
import CommandLineTool
import Foundation
import QueueListen

/// The `redisdc work` commands.
struct WorkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "work", abstract: "Jobs: messages of a mailbox that workers share.",
        subcommands: [
            WorkRun.self, WorkList.self, WorkShow.self, WorkRetry.self, WorkCancel.self, WorkPause.self,
            WorkResume.self,
        ])
}

/// The `redisdc work list` command.
struct WorkList: AsyncParsableCommand {
    enum State: String, ExpressibleByArgument, CaseIterable {
        case waiting, running, failed

        var state: JobInfo.State {
            switch self {
            case .waiting: .waiting
            case .running: .running
            case .failed: .failed
            }
        }
    }

    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print jobs that wait for a worker, that run, or that have failed for good."
    )
    .examples("redisdc work list pictures --state failed --limit 10")
    @OptionGroup var mail: MailOptions
    @Option(help: "waiting: the next one first; running; failed: the latest one first.") var state = State.waiting
    @Option(help: "The maximum number of jobs, 1 to 1,000.") var limit = 100
    @Argument(help: "The mailbox's name.") var name: String

    private struct Report: Encodable {
        var job: String
        var attempts: Int
        var since: String
        var due: String?
        var orderKey: String?
        var reason: String?
        var message: MessageReport
    }

    func run() async throws {
        try await mail.withOffice { office in
            for job in try await office.mailbox(name).jobs(state.state, limit: limit) {
                let since = job.since.formatted(.iso8601)
                var words = [job.id, since, "attempts \(job.attempts)"]
                if let due = job.due, due > Date() { words.append("due \(due.formatted(.iso8601))") }
                if let key = job.orderKey { words.append("order \(key)") }
                if let reason = job.reason { words.append("(\(reason))") }
                try mail.global.report(
                    bytes: Array((words.joined(separator: "  ") + "  ").utf8) + job.message.body,
                    Report(
                        job: job.id, attempts: job.attempts, since: since, due: job.due?.formatted(.iso8601),
                        orderKey: job.orderKey, reason: job.reason, message: MessageReport(job.message)))
            }
        }
    }
}

/// The `redisdc work show` command.
struct WorkShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show how many jobs wait, run and have failed for good."
    )
    .examples("redisdc work show pictures")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String

    private struct Report: Encodable {
        var name: String
        var messages: Int
        var waiting: Int
        var running: Int
        var failed: Int
        var paused: Bool
    }

    func run() async throws {
        try await mail.withOffice { office in
            let mailbox = try office.mailbox(name)
            let (status, messages) = (try await mailbox.workStatus(), try await mailbox.count)
            try mail.global.report(
                "\(name): \(messages) messages, \(status.waiting) jobs wait, \(status.running) run, "
                    + "\(status.failed) have failed" + (status.isPaused ? ", workers are paused" : ""),
                Report(
                    name: name, messages: messages, waiting: status.waiting, running: status.running,
                    failed: status.failed, paused: status.isPaused))
        }
    }
}

/// The `redisdc work retry` command.
struct WorkRetry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Try jobs again that have failed for good."
    )
    .examples("redisdc work retry pictures 0123456789abcdef")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String
    @Argument(help: "The jobs, as redisdc work list prints them.") var jobs: [String]

    func run() async throws {
        try await mail.withOffice { office in
            let count = try await office.mailbox(name).retryJobs(jobs)
            try mail.global.report("\(count) of \(jobs.count) are tried again", JobsReport(jobs: jobs, changed: count))
            if count == 0 { throw Failure(.badData, "none of the jobs has failed for good") }
        }
    }
}

/// The `redisdc work cancel` command.
struct WorkCancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel jobs, also while they run, and forget those that have failed."
    )
    .examples("redisdc work cancel pictures 0123456789abcdef")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String
    @Argument(help: "The jobs, as redisdc work list prints them.") var jobs: [String]

    func run() async throws {
        try await mail.withOffice { office in
            let count = try await office.mailbox(name).cancelJobs(jobs)
            try mail.global.report("\(count) of \(jobs.count) are cancelled", JobsReport(jobs: jobs, changed: count))
            if count == 0 { throw Failure(.badData, "none of the jobs is known: they are done, or not taken yet") }
        }
    }
}

/// What became of jobs, as JSON.
private struct JobsReport: Encodable {
    var jobs: [String]
    var changed: Int
}

/// The `redisdc work pause` command.
struct WorkPause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Let the workers of a mailbox end what they run, and take nothing more."
    )
    .examples("redisdc work pause pictures")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String

    func run() async throws {
        try await mail.withOffice { office in
            try await office.mailbox(name).pauseWork()
            try mail.global.report("paused \(name)", PauseReport(name: name, paused: true))
        }
    }
}

/// The `redisdc work resume` command.
struct WorkResume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Let the workers of a mailbox continue."
    )
    .examples("redisdc work resume pictures")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String

    func run() async throws {
        try await mail.withOffice { office in
            try await office.mailbox(name).resumeWork()
            try mail.global.report("resumed \(name)", PauseReport(name: name, paused: false))
        }
    }
}

/// Whether workers are paused, as JSON.
private struct PauseReport: Encodable {
    var name: String
    var paused: Bool
}
