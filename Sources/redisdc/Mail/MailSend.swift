import ArgumentParser
import QueueListen

struct MailSend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Send messages, in this order, to all these mailboxes or to none.",
        discussion: "With an --id, sending the same again within 10 minutes has no second effect.")
    @OptionGroup var mail: MailOptions
    @Option(name: .customLong("to"), help: "Names of mailboxes, separated by commas. May be given several times.")
    var recipients: [String]
    @Option(help: "Makes it harmless to send the same again.") var id: String?
    @Option(help: "What the messages are, for receivers to tell by.") var type: String?
    @Option(help: "Seconds for which they are worth delivering; decimals allowed.") var ttl: Double?
    @Option(help: "Wait until so many replicas have them.") var replicas: Int?
    @Flag(help: "Wait until the server's disk has them (Redis 7.2).") var fsynced = false
    @Argument(help: "The messages, each one argument.") var messages: [String]

    func validate() throws {
        if replicas != nil, fsynced { throw ValidationError("--replicas or --fsynced, not both") }
        if let ttl, !(ttl > 0 && ttl < 1e9) { throw ValidationError("--ttl is a number of seconds, more than 0") }
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
