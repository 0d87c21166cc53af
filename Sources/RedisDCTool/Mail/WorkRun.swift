// Runs a command for each job of a mailbox.
import ArgumentParser
import ChildProcesses
import CommandLineTool
import Foundation
import Hiredis
import QueueListen

/// The `redisdc work run` command.
struct WorkRun: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run a command for each message of a mailbox, shared with other workers.",
        usage: "redisdc work run NAME [OPTIONS] -- COMMAND…",
        discussion: """
            Each message is a job for one of all workers of the mailbox, whatever their language. The command gets the \
            message's body as its standard input, and these variables: REDISDC_JOB, the message's id; REDISDC_ATTEMPT, \
            1 for the first; REDISDC_FENCE, which grows with each job; REDISDC_TYPE, the message's type or nothing. If the \
            message is a question (redisdc mail ask), what the command writes to its standard output is the answer.

            Status 0: the job is done. 65: it has failed for good. Any other: it is tried again after a pause, by any \
            worker, up to --attempts times.

            When others may run the job, because Redis was unreachable for nearly the TTL, or when it is cancelled, the \
            command and the processes that it has started receive SIGTERM, and SIGKILL after --kill-after. If redisdc \
            itself is stopped or killed, a second process of it does the same.

            With SIGINT or SIGTERM, redisdc takes no more jobs, waits --grace seconds for those that run, terminates \
            their commands, and lets others run them.
            """
    )
    .examples("redisdc work run pictures --concurrency 2 -- ./resize.sh")
    @OptionGroup var mail: MailOptions
    @Argument(help: "The mailbox's name.") var name: String
    @Option(help: "The maximum number of commands that run at the same time, 1 to 256.") var concurrency = 1
    @Option(help: "How often a job is tried, 1 to 1,000.") var attempts = 5
    @Option(help: "Seconds after the last heartbeat of redisdc until others run its jobs. 1 to 3,600.") var ttl = 15.0
    @Option(help: "Seconds before the second attempt. They double with each further one, up to 600.") var pause = 1.0
    @Option(help: "Seconds to wait for commands when redisdc is to end. 0 or more.") var grace = 30.0
    @Option(help: "Seconds between SIGTERM and SIGKILL. 0 or more.") var killAfter = 5.0
    @Option(
        help: """
            End when so many jobs are done or have failed for good. Commands that run then have --grace seconds. \
            (default: no limit)
            """)
    var limit: Int?
    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The program to run and its arguments, after --.", valueName: "command"))
    var command: [ByteArgument] = []

    func validate() throws {
        guard !command.isEmpty else { throw ValidationError("a COMMAND is required after --") }
        for (option, value) in [("--ttl", ttl), ("--pause", pause), ("--grace", grace), ("--kill-after", killAfter)]
        where !(value >= 0 && value < 1e6) {
            throw ValidationError("\(option) must be a number of seconds, 0 or more")
        }
        if let limit, limit < 1 { throw ValidationError("--limit must be at least 1") }
    }

    private var settings: WorkConfiguration {
        var settings = WorkConfiguration()
        settings.concurrency = limit.map { min($0, concurrency) } ?? concurrency
        settings.attempts = attempts
        settings.ttl = .seconds(ttl)
        settings.pause = .seconds(pause)...max(.seconds(pause), .seconds(600))
        settings.grace = .seconds(grace)
        return settings
    }

    func run() async throws {
        // Fails before a job is taken.
        _ = try ChildProgram(command)
        let leaseGuard = try LeaseGuard(grace: .seconds(killAfter))
        try await mail.withOffice { office in
            let mailbox = try office.mailbox(name)
            let (working, ended, failure) = (Locked<Task<Void, any Error>?>(nil), Locked(0), Locked<Failure?>(nil))
            // Takes no more jobs.
            let stop = { @Sendable in working.withLock { $0?.cancel() } }
            var settings = settings
            settings.jobEnded = { isFinal in
                let count = ended.withLock { count in
                    count += isFinal ? 1 : 0
                    return count
                }
                if let limit, count >= limit { stop() }
            }
            let latest = Locked<Job?>(nil)
            let work = working.withLock { [settings] working -> Task<Void, any Error> in
                let work = Task {
                    try await mailbox.work(settings) { job in
                        latest.withLock { $0 = job }
                        do { try await run(job, leaseGuard) } catch let error as Failure {
                            // This machine cannot run commands: it must not use up the attempts of all jobs.
                            failure.withLock { $0 = error }
                            stop()
                            throw JobReturned()
                        }
                    }
                }
                working = work
                return work
            }
            let extending = Task {
                await leaseGuard.keepExtending(ttl: .seconds(ttl)) { latest.withLock { $0?.remaining ?? .zero } }
            }
            defer { extending.cancel() }
            try await withTaskCancellationHandler {
                try await work.value
            } onCancel: {
                work.cancel()
            }
            if let failure = failure.withLock({ $0 }) { throw failure }
        }
    }

    // MARK: One job

    private func run(_ job: Job, _ leaseGuard: LeaseGuard) async throws {
        let program = try ChildProgram(command)
        let input = try TemporaryFile(job.message.body)
        let output = job.message.isQuestion ? try TemporaryFile([]) : nil
        leaseGuard.extend(by: job.remaining)
        let variables = [
            "REDISDC_JOB": job.message.id, "REDISDC_TYPE": job.message.type ?? "",
            "REDISDC_ATTEMPT": "\(job.attempt)", "REDISDC_FENCE": "\(job.fence)",
        ]
        try withExtendedLifetime((input, output)) {
            var streams: [CInt: CInt] = [0: input.descriptor]
            streams[1] = output?.descriptor
            try program.start(variables: variables, streams: streams, leaseGuard: leaseGuard)
        }
        let watching = output.map { output in
            Task {
                // A command that writes without end must not fill the disk.
                while !Task.isCancelled, output.size <= TemporaryFile.maxAnswer {
                    try? await Task.sleep(for: .milliseconds(100))
                }
                if !Task.isCancelled { program.terminate(grace: .seconds(killAfter)) }
            }
        }
        defer { watching?.cancel() }
        let status = await withTaskCancellationHandler {
            await program.end()
        } onCancel: {
            program.terminate(grace: .seconds(killAfter))
        }
        if Task.isCancelled {
            await program.terminate(grace: .seconds(killAfter)).value
            throw CancellationError()
        }
        try output?.check()
        switch status {
        case 0:
            // As the shell does with $(COMMAND), without the ends of the last lines.
            if let content = try output?.content() {
                let end = content.lastIndex { $0 != UInt8(ascii: "\n") }.map { $0 + 1 } ?? 0
                try await job.answer(with: Message(bytes: Array(content[..<end])))
            }
        case ExitStatus.badData.rawValue: throw JobRejection(Self.reason(status))
        default: throw CommandFailure(description: Self.reason(status))
        }
    }

    private static func reason(_ status: Int32) -> String {
        status > 128 ? "the command was ended by signal \(status - 128)" : "the command has ended with status \(status)"
    }
}

private struct CommandFailure: Error, CustomStringConvertible {
    var description: String
}

/// A file without a name, which the system deletes when nobody has it open.
private final class TemporaryFile: Sendable {
    let descriptor: CInt

    /// - Throws: a ``Failure`` if it cannot be written.
    init(_ bytes: [UInt8]) throws {
        var path = Array((NSTemporaryDirectory() + "/redisdc-XXXXXX").utf8CString)
        let opened = mkstemp(&path)
        guard opened >= 0 else { throw Failure(.software, "cannot make a temporary file: \(errorText())") }
        unlink(path)
        // Numbered above the streams of the command.
        descriptor = fcntl(opened, F_DUPFD_CLOEXEC, 10)
        close(opened)
        guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count, lseek(descriptor, 0, SEEK_SET) == 0
        else { throw Failure(.software, "cannot write a temporary file: \(errorText())") }
    }

    deinit { close(descriptor) }

    /// The maximum number of bytes of an answer.
    static let maxAnswer = 1_000_000

    /// The number of bytes that were written to it.
    var size: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }

    /// - Throws: a `JobRejection` if it is more than an answer may have.
    func check() throws {
        guard size > Self.maxAnswer else { return }
        throw JobRejection("the command has written \(size) bytes, an answer has at most 1,000,000")
    }

    /// What was written to it.
    func content() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: size)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }
}

private func errorText() -> String { String(cString: strerror(errno)) }
