// The life of a tool's process: parse, run, cancel on a signal, exit.
package import ArgumentParser
import Dispatch
import Foundation
import Hiredis

extension AsyncParsableCommand {
    /// Parses and runs the command that `arguments` name, and exits the process if that fails.
    ///
    /// SIGINT and SIGTERM cancel the command instead of ending the process, because an interrupted
    /// wait has to give back what it may have acquired. An ``ExitError`` becomes one sentence on
    /// standard error, after the root command's name; the libraries' logs do not appear there.
    package static func runTool(_ arguments: [String]) async {
        discardLogs()
        let work = Task {
            var command = try parseAsRoot(arguments)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        }
        let signals = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in work.cancel() }
            source.resume()
            return source
        }
        let result = await work.result
        signals.forEach { $0.cancel() }
        guard case .failure(let error) = result else { return }
        guard let error = error as? any ExitError else { exit(withError: error) }
        let message = error.exitStatus == .interrupted ? "interrupted" : error.message
        FileHandle.standardError.write(Data("\(_commandName): \(message)\n".utf8))
        Foundation.exit(error.exitStatus.rawValue)
    }
}
