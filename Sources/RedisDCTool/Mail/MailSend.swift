import ArgumentParser
import CommandLineTool
import Foundation
import QueueListen

/// The `redisdc mail send` command.
struct MailSend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send messages in order to all of the given mailboxes, or to none.",
        discussion: """
            With --id, repeating the same send within 10 minutes has no effect. With --after or --at, Redis keeps the messages \
            until then, and any running post office of the namespace sends them: redisdc schedule shows and cancels them. With \
            --every or --cron they are sent again and again; the same command with the same --id changes nothing, and any \
            other replaces it.
            """
    )
    .examples(
        "redisdc mail send --to alice,bob --id order-7 'hello' 'world'",
        "redisdc mail send --to alice --after 600 --id reminder-7 'your game begins'",
        "redisdc mail send --to reports --cron '0 3 * * *' --zone Europe/Berlin --id nightly 'count the day'")
    @OptionGroup var mail: MailOptions
    @Option(name: .customLong("to"), help: "The names of mailboxes, separated by commas. May be repeated.")
    var recipients: [String]
    @Option(help: "An identifier that makes the send idempotent.") var id: String?
    @Option(help: "The type of the messages, for receivers to dispatch on.") var type: String?
    @Option(name: .customLong("header"), help: "A header of the messages, NAME=VALUE. May be repeated.")
    var headers: [String] = []
    @Option(help: "A key whose messages workers run one at a time, in order.") var order: String?
    @Option(help: "Seconds until the messages expire, with decimals; more than 0.") var ttl: Double?
    @Option(help: "Seconds until the messages are sent, with decimals; 0 or more.") var after: Double?
    @Option(help: "The time at which the messages are sent, as in 2030-01-31T12:00:00Z.") var at: String?
    @Option(help: "Seconds after which the messages are sent again and again, with decimals; 1 or more.")
    var every: Double?
    @Option(help: "The times of recurring messages: minute hour day-of-month month day-of-week.") var cron: String?
    @Option(help: "The time zone of --cron, as in Europe/Berlin (default: GMT).") var zone: String?
    @Option(
        help: "The lateness in seconds from which a recurring send is skipped. Without it, a missed one is sent late.")
    var skipAfter: Double?
    @OptionGroup var durability: DurabilityOptions
    @Argument(help: "The messages, one per argument. They may be any bytes.") var messages: [ByteArgument]

    func validate() throws {
        if headers.contains(where: { !$0.contains("=") }) { throw ValidationError("--header must be NAME=VALUE") }
        if let ttl, !(ttl > 0 && ttl < 1e9) { throw ValidationError("--ttl must be a number of seconds, more than 0") }
        if let after, !(after >= 0 && after < 1e9) {
            throw ValidationError("--after must be a number of seconds, 0 or more")
        }
        let times = [
            ("--after", after != nil), ("--at", at != nil), ("--every", every != nil), ("--cron", cron != nil),
        ]
        .filter(\.1)
        if times.count > 1 { throw ValidationError("\(times[0].0) and \(times[1].0) exclude each other") }
        let recurs = every != nil || cron != nil
        if recurs, id == nil {
            throw ValidationError("a recurring send needs --id, with which it is replaced and cancelled")
        }
        if zone != nil, cron == nil { throw ValidationError("--zone is for --cron") }
        if skipAfter != nil, !recurs { throw ValidationError("--skip-after is for --every and --cron") }
        if let skipAfter, !(skipAfter >= 0 && skipAfter < 1e7) {
            throw ValidationError("--skip-after must be a number of seconds, 0 or more")
        }
        if let every, !(every >= 1 && every < 1e9) {
            throw ValidationError("--every must be a number of seconds, 1 or more")
        }
        if let at, Self.date(at) == nil { throw ValidationError("--at must be a time such as 2030-01-31T12:00:00Z") }
    }

    private func recurrence() throws -> Recurrence? {
        if let every { return try .every(.seconds(every)) }
        guard let cron else { return nil }
        guard let zone = TimeZone(identifier: zone ?? "GMT") else {
            throw Failure(.usage, "--zone \"\(zone ?? "")\" is not a time zone such as Europe/Berlin")
        }
        return try .cron(cron, in: zone)
    }

    private static func date(_ text: String) -> Date? { try? Date(text, strategy: .iso8601) }

    private struct ScheduledReport: Encodable {
        var id: String
        var time: String
    }

    private func report(_ send: ScheduledSend) throws {
        let time = send.time.formatted(.iso8601)
        try mail.global.report("due at \(time), id \(send.id)", ScheduledReport(id: send.id, time: time))
    }

    private struct Report: Encodable {
        var id: String
        var indices: [String: [Int]]
        var durability: String
    }

    func run() async throws {
        let names = recipients.flatMap { $0.split(separator: ",").map { String($0) } }
        let pairs = headers.map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false) }
        let values = Dictionary(pairs.map { (String($0[0]), String($0[1])) }) { _, last in last }
        let contents = messages.map {
            var message = Message(bytes: $0.bytes, type: type, headers: values, ttl: ttl.map { .seconds($0) })
            message.orderKey = order
            return message
        }
        let recurrence = try recurrence()
        try await mail.withOffice { office in
            if let recurrence, let id {
                return try report(
                    try await office.send(
                        contents, to: names, recurring: recurrence, id: id,
                        missed: skipAfter.map { .skip(after: .seconds($0)) } ?? .sendOnce,
                        durability: durability.durability))
            }
            if let after {
                return try report(
                    try await office.send(
                        contents, to: names, after: .seconds(after), id: id, durability: durability.durability))
            }
            if let time = at.flatMap(Self.date) {
                return try report(
                    try await office.send(contents, to: names, at: time, id: id, durability: durability.durability))
            }
            let receipt = try await office.send(contents, to: names, id: id, durability: durability.durability)
            let lines = receipt.indices.sorted { $0.key < $1.key }.map { name, indices in
                indices.count == 1
                    ? "\(name): \(indices.lowerBound)" : "\(name): \(indices.lowerBound) to \(indices.upperBound)"
            }
            try mail.global.report(
                lines.joined(separator: "\n"),
                Report(
                    id: receipt.id, indices: receipt.indices.mapValues { Array($0) },
                    durability: "\(receipt.durability)"))
        }
    }
}
