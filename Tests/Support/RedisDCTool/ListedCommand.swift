import ArgumentParser

@testable import RedisDCTool

/// A command without subcommands.
struct ListedCommand {
    /// The words that name it, from `redisdc` on.
    var words: [String]
    var type: any ParsableCommand.Type

    /// All commands that the help lists.
    static var all: [ListedCommand] { commands(below: Tool.self, ["redisdc"]) }

    private static func commands(below command: any ParsableCommand.Type, _ words: [String]) -> [ListedCommand] {
        var found: [ListedCommand] = []
        for child in command.configuration.subcommands where child.configuration.shouldDisplay {
            found += commands(below: child, words + [child._commandName])
        }
        return found.isEmpty ? [ListedCommand(words: words, type: command)] : found
    }
}
