// The life of a tool's process: parse, run, cancel on a signal or without a reader, exit.
package import ArgumentParser
import Dispatch
import Foundation
import Hiredis
import Synchronization

/// A command that runs only to print what happens.
///
/// It is cancelled when its reader has gone, even while it has nothing to print. Other commands act
/// first and fail when they print the result.
package protocol ReaderBoundCommand: AsyncParsableCommand {
    /// Whether that is so with the command's present options.
    var endsWithReader: Bool { get }
}

extension ReaderBoundCommand {
    package var endsWithReader: Bool { true }
}

extension AsyncParsableCommand {
    /// Parses and runs the command that `arguments` name, and exits the process if that fails.
    ///
    /// SIGINT and SIGTERM cancel the command instead of ending the process, because an interrupted
    /// wait has to give back what it may have acquired. So is a
    /// ``ReaderBoundCommand`` whose reader has gone. An ``ExitError`` becomes one sentence on
    /// standard error, after the root command's name; the libraries' logs do not appear there.
    ///
    /// - Parameter arguments: as ``ArgumentText`` makes them.
    package static func runTool(_ arguments: [String]) async {
        StandardOutput.prepare()
        discardLogs()
        let running = Mutex<Task<Void, any Error>?>(nil)
        let work = Task {
            var command = try parseAsRoot(arguments)
            try ArgumentText.requireText(in: command)
            if (command as? any ReaderBoundCommand)?.endsWithReader == true {
                StandardOutput.onReaderGone { running.withLock { $0?.cancel() } }
            }
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        }
        running.withLock { $0 = work }
        // The reader may have gone before the task was known.
        if StandardOutput.failure != nil { work.cancel() }
        let signals = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in work.cancel() }
            source.resume()
            return source
        }
        let result = await work.result
        for signal in signals { signal.cancel() }
        var status: Int32 = 0
        if case .failure(let error) = result { status = report(error) }
        // A command that was cancelled because of its output, or that has ignored a failure.
        if let failure = StandardOutput.failure, status == 0 || status == ExitStatus.interrupted.rawValue {
            status = failure.exitStatus.rawValue
        }
        if status != 0 { Foundation.exit(status) }
    }

    /// Writes why the command has ended, and returns the exit status.
    private static func report(_ error: any Error) -> Int32 {
        if let error = error as? any ExitError {
            let isInterrupted = error.exitStatus == .interrupted
            // Nobody has interrupted a command whose output has failed.
            let reason: any ExitError = isInterrupted ? StandardOutput.failure ?? error : error
            let message = reason.exitStatus == .interrupted ? "interrupted" : reason.message
            if !message.isEmpty { StandardError.write("\(_commandName): \(message)\n") }
            return reason.exitStatus.rawValue
        }
        // Help, versions and completions are errors of the parser.
        let (text, status) = (fullMessage(for: error), exitCode(for: error).rawValue)
        if status != 0 {
            if !text.isEmpty { StandardError.write(text + "\n") }
            return status
        }
        do { if !text.isEmpty { try StandardOutput.write(line: text) } } catch { return report(error) }
        return status
    }
}
