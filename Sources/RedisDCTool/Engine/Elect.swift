import ArgumentParser
import CommandLineTool
import RedisDC

/// The `redisdc elect` command.
struct Elect: ReaderBoundCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command as the leader of an election, or print who leads.",
        usage: """
            redisdc elect NAME [--timeout SECONDS] [--ttl SECONDS] [--grace SECONDS] -- COMMAND…
            redisdc elect NAME --show | --watch
            """,
        discussion: """
            Candidates lead in the order of their requests, one at a time. With --show, the current leader is printed: \
            its node and its term, a number that grows with every leader. With --watch, it is printed again whenever it \
            changes, until Ctrl-C. REDISDC_FENCE is the term.

            \(HeldCommand.explanation)
            """
    )
    .examples("redisdc elect scheduler -- ./scheduler.sh")
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The election's name.") var name: String
    @Flag(help: "Print the current leader instead of running a command.") var show = false
    @Flag(help: "Print the current leader and every later one.") var watch = false
    @OptionGroup var timeout: TimeoutOption
    @OptionGroup var held: HeldCommand

    private struct Report: Encodable {
        var name: String
        var leads: Bool
        var node: String?
        var session: String?
        var term: UInt64?
    }

    var endsWithReader: Bool { watch }

    func validate() throws {
        if show || watch {
            guard held.command.isEmpty else { throw ValidationError("--show and --watch take no COMMAND") }
            guard !(show && watch) else { throw ValidationError("use one of --show and --watch") }
        } else {
            try held.requireCommand()
        }
    }

    func run() async throws {
        if show || watch { try await printLeaders() } else { try await lead() }
    }

    private func lead() async throws {
        let program = try held.program()
        try await engine.withSession(ttl: held.ttlDuration, node: held.node) { coordinator in
            let election = try coordinator.election(name)
            let term = try await election.campaign(timeout: timeout.duration)
            try await held.run(program, holding: term) { try await election.resign(term) }
        }
    }

    private func printLeaders() async throws {
        try await engine.withObserver { coordinator in
            let election = try coordinator.election(name)
            if show { return try report(try await election.leader()) }
            for await leader in election.changes() { try report(leader) }
        }
    }

    private func report(_ leader: Leader?) throws {
        try engine.global.report(
            leader.map { "\($0.node) leads, term \($0.term)" } ?? "no leader",
            Report(
                name: name, leads: leader != nil, node: leader?.node, session: leader?.session, term: leader?.term))
    }
}
