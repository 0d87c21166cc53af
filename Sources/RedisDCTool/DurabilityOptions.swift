import ArgumentParser
import Hiredis

/// The options of a command whose effect can be confirmed to be durable.
struct DurabilityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Wait until this number of replicas has the change, so that a failover to one of them does not lose it.",
            valueName: "replicas"))
    var replicated: Int?

    @Flag(help: "Wait until the change is on the server's disk (Redis 7.2).")
    var fsynced = false

    var durability: Durability { fsynced ? .fsynced : replicated.map { .replicated($0) } ?? .memory }

    var isRequested: Bool { fsynced || replicated != nil }

    func validate() throws {
        if replicated != nil, fsynced { throw ValidationError("give either --replicated or --fsynced") }
        if let replicated, !(1...1000).contains(replicated) {
            throw ValidationError("--replicated must be a number of replicas, 1 to 1000")
        }
    }
}
