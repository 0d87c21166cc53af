import ArgumentParser
import CommandLineTool
import QueueListen

/// The `redisdc mail send` command.
struct MailSend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send messages in order to all of the given mailboxes, or to none.",
        discussion: "With --id, repeating the same send within 10 minutes has no effect."
    )
    .examples("redisdc mail send --to alice,bob --id order-7 'hello' 'world'")
    @OptionGroup var mail: MailOptions
    @Option(name: .customLong("to"), help: "The names of mailboxes, separated by commas. May be repeated.")
    var recipients: [String]
    @Option(help: "An identifier that makes the send idempotent.") var id: String?
    @Option(help: "The type of the messages, for receivers to dispatch on.") var type: String?
    @Option(name: .customLong("header"), help: "A header of the messages, NAME=VALUE. May be repeated.")
    var headers: [String] = []
    @Option(help: "Seconds until the messages expire, with decimals; more than 0.") var ttl: Double?
    @OptionGroup var durability: DurabilityOptions
    @Argument(help: "The messages, one per argument. They may be any bytes.") var messages: [ByteArgument]

    func validate() throws {
        if headers.contains(where: { !$0.contains("=") }) { throw ValidationError("--header must be NAME=VALUE") }
        if let ttl, !(ttl > 0 && ttl < 1e9) { throw ValidationError("--ttl must be a number of seconds, more than 0") }
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
            Message(bytes: $0.bytes, type: type, headers: values, ttl: ttl.map { .seconds($0) })
        }
        try await mail.withOffice { office in
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
