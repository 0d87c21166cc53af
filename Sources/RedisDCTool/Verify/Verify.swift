import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis
import RedisDC
import Verification

/// The `redisdc verify` command.
struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the promises of the library against a deployment while it fails over.",
        discussion: """
            Starts several processes that use locks, semaphores, barriers and mailboxes at random, in a namespace of \
            their own that is removed afterwards, and judges from their records what docs/failure-model.md promises. \
            Fail the deployment over while it runs; --kill starts a private one and does it. docs/verify.md describes \
            the checks, the output and the format of a history. Exits with 1 if a promise was violated or not checked.
            """
    )
    .examples(
        "redisdc verify --for 10m --redis redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/orders",
        "redisdc verify --kill sentinel --failovers 10")
    @OptionGroup var global: GlobalOptions

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long to run: seconds, or with s, m or h. (default: 60s)", valueName: "duration"))
    var length: String?
    @Option(help: "The number of processes, 2 to 64.") var processes = 6
    @Option(help: "The families to use, with commas between them: locks, semaphores, barriers, mail. (default: all)")
    var only: String?
    @Option(help: "Fail over a private deployment: single, sentinel or cluster. Also kills processes of the run.")
    var kill: LocalTopology?
    @Option(help: ArgumentHelp("The server program for --kill.", valueName: "path")) var server: String?
    @Option(help: "With --kill: end after this number of failovers, from 1.") var failovers: Int?
    @Option(help: "The number of partitions, 1 to 64. (default: 4 with a cluster, else 1)") var partitions: Int?
    @Option(help: "The time to live of the sessions in seconds, 2 to 60.") var ttl = 10
    @Option(help: "Acquire locks and leases that this number of replicas has confirmed, 1 to 1000.") var replicated:
        Int?
    @Option(
        help: ArgumentHelp(
            "Judge the locks of another program: a command that takes the place of the processes.", valueName: "command"
        ))
    var rival: String?
    @Option(help: "The seed of the random choices.") var seed: UInt64?
    @Option(
        help: ArgumentHelp(
            "Where to store the history. (default: a file in the current folder, if a promise was violated)",
            valueName: "file"))
    var history: String?
    @Option(help: ArgumentHelp("Judge a stored history again.", valueName: "file")) var replay: String?
    @Option(help: .hidden) var defect: Defect?

    func validate() throws {
        guard (2...64).contains(processes) else { throw ValidationError("--processes must be 2 to 64") }
        guard (2...60).contains(ttl) else { throw ValidationError("--ttl must be 2 to 60") }
        guard partitions.map({ (1...64).contains($0) }) ?? true else {
            throw ValidationError("--partitions must be 1 to 64")
        }
        guard failovers.map({ $0 >= 1 && kill != nil }) ?? true else {
            throw ValidationError("--failovers must be at least 1, and requires --kill")
        }
        guard replicated.map({ (1...1000).contains($0) }) ?? true else {
            throw ValidationError("--replicated must be a number of replicas, 1 to 1000")
        }
        if rival != nil, only != nil || replicated != nil {
            throw ValidationError("--rival has locks of its own: it cannot be used with --only and --replicated")
        }
        if kill != nil, global.url != nil { throw ValidationError("use either --kill or --redis") }
        if kill == nil, server != nil { throw ValidationError("--server requires --kill") }
        _ = try duration()
        _ = try families()
    }

    func run() async throws {
        if let replay { return try report(Judge.judge(try Self.history(replay))) }
        let interruption = Interruption()
        // A task of its own: an interrupted run still ends its processes and removes its keys.
        let work = Task { try await verify(interruption) }
        let outcome = await withTaskCancellationHandler {
            await work.result
        } onCancel: {
            interruption.set()
        }
        try report(outcome.get())
    }

    private static func history(_ path: String) throws -> RunHistory {
        let text: Data
        do { text = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
            throw Failure(.badData, "cannot read \(path): \(error.localizedDescription)")
        }
        do throws(RunHistory.Unreadable) { return try RunHistory(text) } catch {
            throw Failure(.badData, "cannot judge \(path): \(error.message)")
        }
    }

    private func verify(_ interruption: Interruption) async throws -> RunOutcome {
        guard let kill else { return try await self.run(on: global, nil, interruption) }
        var outcome: RunOutcome?
        try await withLocalDeployment(kill, server: server) { deployment in
            var options = global
            options.url = deployment.url
            outcome = try await self.run(on: options, deployment, interruption)
        }
        return outcome!
    }

    private func run(
        on options: GlobalOptions, _ deployment: (any LocalDeployment)?, _ interruption: Interruption
    ) async throws -> RunOutcome {
        let seed = seed ?? UInt64.random(in: 0...UInt64(UInt32.max))
        let isCluster = options.chosenURL?.contains("-cluster://") == true
        let header = RunHistory.Header(
            seed: seed, ttl: ttl * 1000, families: try families(), isLossless: kill == .single && rival == nil,
            isRival: rival == nil ? nil : true)
        let run = VerifyRun(
            options: options, header: header, deployment: deployment, interruption: interruption,
            processes: processes, partitions: partitions ?? (isCluster ? 4 : 1), ttl: ttl,
            length: try duration(), failovers: failovers, replicated: replicated,
            rival: rival?.split(separator: " ").map(String.init), defect: defect)
        return try await run.make()
    }

    // MARK: Options

    /// `nil` for no limit.
    private func duration() throws -> Duration? {
        guard let length else { return failovers == nil ? .seconds(60) : nil }
        let factor = length.hasSuffix("m") ? 60.0 : length.hasSuffix("h") ? 3600 : 1
        let number = length.hasSuffix("s") || factor > 1 ? String(length.dropLast()) : length
        guard let seconds = Double(number), seconds > 0, seconds < 1e7 else {
            throw ValidationError("--for must be a number of seconds, or a number with s, m or h")
        }
        return .seconds(seconds * factor)
    }

    private func families() throws -> [Family] {
        if rival != nil { return [.locks] }
        guard let only else { return Family.allCases }
        return try only.split(separator: ",").map { name in
            guard let family = Family(rawValue: String(name)) else {
                throw ValidationError("--only: no family \"\(name)\"; use locks, semaphores, barriers or mail")
            }
            return family
        }
    }

    // MARK: Report

    private func report(_ outcome: RunOutcome) throws {
        let verdict = Judge.judge(outcome.history)
        let isViolated = verdict.result == .violated
        if let path = history ?? (isViolated ? "redisdc-verify-\(outcome.history.header.seed).jsonl" : nil) {
            try outcome.history.lines().write(to: URL(fileURLWithPath: path))
            note("the history is in \(path); judge it again with redisdc verify --replay \(path)")
        }
        for text in outcome.notes { note(text) }
        if let failure = outcome.failure {
            try global.report(VerdictText(verdict: verdict).text, verdict)
            throw Failure(.software, "the run has ended early: \((failure as? any ExitError)?.message ?? "\(failure)")")
        }
        try report(verdict)
    }

    private func report(_ verdict: Verdict) throws {
        try global.report(VerdictText(verdict: verdict).text, verdict)
        if verdict.result != .held { throw ExitCode(1) }
    }

    private func note(_ text: String) { StandardError.write("redisdc: \(text)\n") }
}

extension Defect: ExpressibleByArgument {}
