import Foundation

/// The benchmark program. `bench` runs the plan and prints the tables; `bench WORKER …` runs one measured process.
@main
struct Bench {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments.first == "server-cost" {
                try await CostRecord.run(Array(arguments.dropFirst()))
            } else if let first = arguments.first, !first.hasPrefix("-") {
                try await work(first, Array(arguments.dropFirst()))
            } else {
                try await Plan(arguments).run()
            }
        } catch {
            FileHandle.standardError.write(Data("bench: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func work(_ job: String, _ arguments: [String]) async throws {
        guard arguments.count >= 4, let count = Int(arguments[1]), let placement = Placement(rawValue: arguments[3])
        else {
            throw BenchError("usage: bench WORKER URL COUNT PREFIX pinned|global")
        }
        let (url, prefix) = (arguments[0], arguments[2])
        // These workers read lines from their parent first, and call exitWithParent() after that.
        if !["waiters", "contended", "local-contended", "listeners"].contains(job) { ParentInput.exitWithParent() }
        switch job {
        case "handoff": report(try await Handoff.run(url: url, rounds: count, prefix: prefix, placement: placement))
        case "handoff-peer": try await Handoff.peer(url: url, rounds: count, prefix: prefix, placement: placement)
        case "engine-handoff":
            report(try await EngineHandoff.run(url: url, rounds: count, prefix: prefix, placement: placement))
        case "engine-handoff-peer":
            try await EngineHandoff.peer(url: url, rounds: count, prefix: prefix, placement: placement)
        case "pubsub": try await PublishToReceipt.run(url: url, rounds: count, prefix: prefix, placement: placement)
        case "pubsub-peer":
            report(try await PublishToReceipt.peer(url: url, rounds: count, prefix: prefix, placement: placement))
        case "fanout":
            report(
                try await FanOut.run(url: url, subscribers: 1000, rounds: count, prefix: prefix, placement: placement))
        case "fanout-peer":
            try await FanOut.peer(url: url, subscribers: 1000, rounds: count, prefix: prefix, placement: placement)
        case "pushes":
            print(try await Pushes.run(url: url, tasks: 64, each: count / 64, prefix: prefix, placement: placement))
        case "pairs":
            print(try await LockPairs.run(url: url, tasks: 1, each: count, prefix: prefix, placement: placement))
        case "local-pairs":
            let locality = try LocalMutex.locality(arguments.dropFirst(4).first)
            print(
                try await LocalMutex.pairs(
                    url: url, count: count, prefix: prefix, placement: placement, locality: locality))
        case "local-contended":
            let locality = try LocalMutex.locality(arguments.dropFirst(4).first)
            try await LocalMutex.contend(
                url: url, tasks: count, prefix: prefix, placement: placement, locality: locality)
        case "mutexes":
            print(try await LockPairs.run(url: url, tasks: 64, each: count / 64, prefix: prefix, placement: placement))
        case "waiters":
            print(try await ManyWaiters.run(url: url, count: count, prefix: prefix, placement: placement))
        case "contended": try await Contention.run(url: url, prefix: prefix, placement: placement)
        case "barrier":
            print(try await ParallelProcesses.rounds(url: url, count: count, prefix: prefix, placement: placement))
        case "operations-mutex", "operations-read-write-lock":
            print(
                try await ParallelProcesses.operations(
                    url: url, count: count, prefix: prefix, placement: placement,
                    usesReadWriteLock: job == "operations-read-write-lock"))
        case "condition", "condition-peer":
            report(
                try await ConditionHandoff.run(
                    url: url, rounds: count, prefix: prefix, placement: placement, isPeer: job == "condition-peer"))
        case "candidate": try await Failover.run(url: url, prefix: prefix)
        case "repair":
            guard let operation = arguments.dropFirst(4).first.flatMap(RepairCost.Operation.init) else {
                throw BenchError("usage: bench repair URL PAIRS PREFIX pinned|global send|signal [control]")
            }
            let isControl = arguments.last == "control"
            report(
                try await RepairCost.run(
                    url: url, operation, pairs: count, isControl: isControl, prefix: prefix, placement: placement))
        case "spread-pairs", "spread-sends", "spread-tokens", "spread-tokens-peer":
            try await spread(job, url, count, prefix, placement, Array(arguments.dropFirst(4)))
        default: try await mail(job, url, count, prefix, placement, Array(arguments.dropFirst(4)))
        }
    }

    /// Workers whose namespace has several partitions.
    private static func spread(
        _ job: String, _ url: String, _ count: Int, _ prefix: String, _ placement: Placement, _ more: [String]
    ) async throws {
        let numbers = more.compactMap { Int($0) }
        guard let partitions = numbers.first else {
            throw BenchError("usage: bench \(job) URL COUNT PREFIX pinned|global PARTITIONS [TOKENS]")
        }
        switch job {
        case "spread-pairs":
            print(
                try await LockPairs.run(
                    url: url, tasks: 64, each: count / 64, prefix: prefix, placement: placement, partitions: partitions)
            )
        case "spread-sends":
            print(
                try await Sends.spread(
                    url: url, each: count / Sends.tasks, prefix: prefix, placement: placement, partitions: partitions))
        default:
            let tokens = Tokens(count: numbers.last ?? 1, partitions: partitions)
            if job == "spread-tokens" {
                print(try await tokens.run(url: url, handoffs: count, prefix: prefix, placement: placement))
            } else {
                try await tokens.peer(url: url, handoffs: count, prefix: prefix, placement: placement)
            }
        }
    }

    private static func mail(
        _ job: String, _ url: String, _ count: Int, _ prefix: String, _ placement: Placement, _ more: [String]
    ) async throws {
        switch job {
        case "send":
            guard let recipients = more.first.flatMap({ Int($0) }) else {
                throw BenchError("usage: bench send URL COUNT PREFIX pinned|global RECIPIENTS")
            }
            print(
                try await Sends.run(
                    url: url, recipients: recipients, each: count / Sends.tasks, prefix: prefix, placement: placement))
        case "receipt": try await SendToReceipt.run(url: url, rounds: count, prefix: prefix, placement: placement)
        case "receipt-peer":
            report(try await SendToReceipt.peer(url: url, rounds: count, prefix: prefix, placement: placement))
        case "listeners":
            print(try await ManyListeners.run(url: url, count: count, prefix: prefix, placement: placement))
        case "wake":
            report(try await ManyListeners.wake(url: url, count: count, prefix: prefix, placement: placement))
        case "drain":
            print(try await Draining.run(url: url, count: count, prefix: prefix, placement: placement))
        case "work": print(try await Working.run(url: url, count: count, prefix: prefix, placement: placement))
        case "stream": print(try await Working.stream(url: url, count: count, prefix: prefix, placement: placement))
        case "late": try await Lateness.run(url: url, count: count, prefix: prefix, placement: placement)
        case "late-peer":
            report(try await Lateness.peer(url: url, count: count, prefix: prefix, placement: placement))
        case "mail-memory": print(try await MailMemory.run(url: url, count: count, prefix: prefix))
        case "list-memory": print(try await MailMemory.list(url: url, count: count, prefix: prefix))
        case "mail-crowd":
            guard more.count == 2, let rounds = Int(more[1]) else {
                throw BenchError("usage: bench mail-crowd URL COUNT PREFIX pinned|global messages|mailboxes ROUNDS")
            }
            report(
                try await MailCrowd.run(url: url, kind: more[0], count: count, rounds: rounds, prefix: prefix))
        default: throw BenchError("unknown worker \(job)")
        }
    }

    private static func report(_ figures: some Encodable) {
        let data = (try? JSONEncoder().encode(figures)) ?? Data()
        print(String(decoding: data, as: UTF8.self))
    }
}

struct BenchError: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
