// What the commands of this program share: an alteration of the scripts, and hashes that are the same in each run.
import ArgumentParser
import Foundation

/// An alteration of the scripts.
struct AlterationOptions: ParsableArguments {
    @Option(help: "A text of the scripts, on one line, that is replaced by that of --by.")
    var replace: String?
    @Option(help: "See --replace.")
    var by: String?

    func alter(_ text: String) -> String { Self.alter(text, replace, by) }

    /// Replaces a text of a script, on one line and without comments; without both texts, nothing.
    static func alter(_ text: String, _ replace: String?, _ by: String?) -> String {
        guard let replace, let by else { return text }
        let code = text.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: " ")
        return code.split(separator: " ").joined(separator: " ").replacingOccurrences(of: replace, with: by)
    }
}

extension ParsableCommand {
    /// Starts this program again with hash values that are the same in each run, on which the order in dictionaries
    /// depends.
    func repeatWithDeterministicHashes() throws {
        guard ProcessInfo.processInfo.environment["SWIFT_DETERMINISTIC_HASHING"] == nil else { return }
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", arguments)
        throw ValidationError("cannot start \(CommandLine.arguments[0]) again")
    }
}
