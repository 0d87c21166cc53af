import ArgumentParser
import QueueListen

struct MailSend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send messages, in this order, to all of the mailboxes or to none.",
        discussion: "With an --id, repeating the same send within 10 minutes has no second effect.")
    @OptionGroup var mail: MailOptions
    @Option(name: .customLong("to"), help: "The names of mailboxes, separated by commas. Can be repeated.")
    var recipients: [String]
    @Option(help: "Identifies the send, so that it can be repeated without a second effect.") var id: String?
    @Option(help: "The type of the messages, by which receivers select a handler.") var type: String?
    @Option(help: "How long the messages are delivered, in seconds; decimals allowed.") var ttl: Double?
    @Option(help: "Wait until this number of replicas have the messages.") var replicas: Int?
    @Flag(help: "Wait until the messages are on the server's disk (Redis 7.2 or later).") var fsynced = false
    @Argument(help: "The messages, each one argument.") var messages: [String]

    func validate() throws {
        if replicas != nil, fsynced { throw ValidationError("use --replicas or --fsynced, not both") }
        if let ttl, !(ttl > 0 && ttl < 1e9) {
            throw ValidationError("--ttl must be a number of seconds greater than 0")
        }
    }

    private struct Report: Encodable {
        var id: String
        var indices: [String: [Int]]
        var durability: String
    }

    func run() async throws {
        let names = recipients.flatMap { $0.split(separator: ",").map { String($0) } }
        let contents = messages.map { Message(text: $0, type: type, ttl: ttl.map { .seconds($0) }) }
        let durability: Durability = fsynced ? .fsynced : replicas.map { .replicated($0) } ?? .memory
        try await mail.withOffice { office in
            let receipt = try await office.send(contents, to: names, id: id, durability: durability)
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
