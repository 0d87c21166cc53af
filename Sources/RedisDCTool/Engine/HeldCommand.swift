import ArgumentParser
import CommandLineTool
import Foundation
import RedisDC

/// The command that runs while a lock or permits are held, and its options.
struct HeldCommand: ParsableArguments {
    static let explanation = """
        The command inherits standard input, output and error. Its environment contains the fencing token, a number that \
        grows with every grant, as REDISDC_FENCE. SIGINT and SIGTERM are forwarded to it. When it ends, the lease is \
        released.

        If the lease is lost before (Redis unreachable for nearly the TTL, data lost, or released by an operator), the \
        command and the processes that it has started receive SIGTERM, and SIGKILL after --grace. Another holder may be \
        active by then: where that matters, compare fencing tokens.

        If redisdc itself is stopped (SIGSTOP, Ctrl-Z) or killed (SIGKILL), a second process of it does the same shortly \
        before Redis frees the lease. The command runs beside the next holder only if both processes are stopped or \
        killed and the command is not, or for the time until it obeys SIGTERM, or if it has left its process group.

        Exit status: that of the command, or 128 plus the number of the signal that ended it; 75 not acquired in time; 74 \
        lost before the command ended; 126 the program cannot be executed; 127 no such program.
        """

    @Option(help: "Seconds after the last heartbeat of redisdc until Redis frees the lease. At least 1.")
    var ttl = 15.0

    @Option(help: "Seconds between SIGTERM and SIGKILL when the lease is lost. 0 or more.")
    var grace = 5.0

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The program to run and its arguments, after --.", valueName: "command"))
    var command: [ByteArgument] = []

    var ttlDuration: Duration { .seconds(ttl) }

    /// The name of this process in `inspect`: redisdc and the program that it runs.
    var node: String { "redisdc " + (command.first.map { URL(fileURLWithPath: $0.text).lastPathComponent } ?? "") }

    func validate() throws {
        guard ttl >= 1, ttl < 1e6 else { throw ValidationError("--ttl must be a number of seconds, at least 1") }
        guard grace >= 0, grace < 1e6 else { throw ValidationError("--grace must be a number of seconds, 0 or more") }
    }

    func requireCommand() throws {
        guard !command.isEmpty else { throw ValidationError("a COMMAND is required after --") }
    }

    /// Finds the program before the wait for the lease.
    ///
    /// - Throws: a ``Failure`` if the program does not exist, or is not executable.
    func program() throws -> ChildProgram { try ChildProgram(command) }

    /// Runs the program to its end and releases the lease.
    ///
    /// - Parameter release: releases the lease; `nil` for the lease's own release.
    /// - Throws: the program's status as an `ExitCode`, unless it is 0; a ``Failure`` with `.lost`.
    func run(
        _ program: ChildProgram, holding lease: Lease, release: (() async throws -> Void)? = nil
    ) async throws {
        let release = release ?? { try await lease.release() }
        let signals = program.passOnSignals()
        defer { for signal in signals { signal.cancel() } }
        let leaseGuard: LeaseGuard
        do {
            leaseGuard = try LeaseGuard(grace: .seconds(grace))
            leaseGuard.extend(by: lease.remaining)
            try program.start(variables: ["REDISDC_FENCE": "\(lease.fence)"], leaseGuard: leaseGuard)
        } catch {
            try? await release()
            throw error
        }
        let extending = Task { await leaseGuard.keepExtending(ttl: ttlDuration) { lease.remaining } }
        defer { extending.cancel() }
        lease.onLoss { _ in program.terminate(grace: .seconds(grace)) }
        let status = await program.end()
        do {
            try lease.check()
        } catch {
            await program.terminate(grace: .seconds(grace)).value
            throw Failure(.lost, "lost \"\(lease.name)\" before the command ended: \(error.message)")
        }
        // The lease was valid until the command ended. If the release fails, the end of the session frees the lease.
        try? await release()
        if status != 0 { throw ExitCode(status) }
    }
}
