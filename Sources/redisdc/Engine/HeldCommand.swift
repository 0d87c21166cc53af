// A command that runs while a lock or permits are held.
import ArgumentParser
import Foundation
import RedisDC

struct HeldCommand: ParsableArguments {
    static let explanation = """
        The command has this program's input and output, and finds the fence, a number that grows with every grant, in \
        the environment as REDISDC_FENCE. SIGINT and SIGTERM are passed on to it; what is held is released when it has \
        ended.

        When what is held is lost before (Redis cannot be reached for nearly the TTL, has lost its data, or an operator \
        has taken it away), the command and the processes that it started get SIGTERM, and SIGKILL after --grace. Someone \
        else may be at work by then: where that matters, compare fences.

        If redisdc itself is killed (kill -9, a machine that crashes), it is free after the TTL, and the command, if it is \
        still there, goes on.

        Exit status: the command's, or 128 and the number of the signal that ended it; 75 not acquired in time; 74 lost \
        before the command had ended; 127 no such program.
        """

    @Option(help: "After so many seconds without news from redisdc, Redis gives it to the next. At least 1.")
    var ttl = 15.0

    @Option(help: "How many seconds the command has to end when what it holds is lost.")
    var grace = 5.0

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The program to run and its arguments, behind --.", valueName: "command"))
    var command: [String] = []

    var ttlDuration: Duration { .seconds(ttl) }

    /// What others see of us: which program this is for.
    var node: String { "redisdc " + (command.first.map { URL(fileURLWithPath: $0).lastPathComponent } ?? "") }

    func validate() throws {
        guard ttl >= 1, ttl < 1e6 else { throw ValidationError("--ttl is a number of seconds, at least 1") }
        guard grace >= 0, grace < 1e6 else { throw ValidationError("--grace is a number of seconds, 0 or more") }
    }

    func requireCommand() throws {
        guard !command.isEmpty else { throw ValidationError("give the COMMAND to run behind --") }
    }

    /// - Throws: when there is no such program, which is worth knowing before a long wait.
    func program() throws -> ChildProgram { try ChildProgram(command) }

    /// Runs it to its end and releases.
    ///
    /// - Throws: its status as an `ExitCode`, unless that is 0; `.lost`.
    func run(_ program: ChildProgram, holding lease: Lease) async throws {
        let signals = program.passOnSignals()
        defer { signals.forEach { $0.cancel() } }
        do {
            try program.start(environment: ["REDISDC_FENCE": "\(lease.fence)"])
        } catch {
            try? await lease.release()
            throw error
        }
        lease.onLoss { _ in program.terminate(grace: .seconds(grace)) }
        let status = await program.end()
        do {
            try lease.check()
        } catch {
            await program.terminate(grace: .seconds(grace)).value
            throw Failure(.lost, "\"\(lease.name)\" was lost before the command had ended: \(error.message)")
        }
        // It was held as long as it was needed: whatever becomes of it now, the end of the session frees it.
        try? await lease.release()
        if status != 0 { throw ExitCode(status) }
    }
}
