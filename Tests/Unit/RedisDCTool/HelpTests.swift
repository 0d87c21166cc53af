import ArgumentParser
import Testing

@testable import RedisDCTool
@testable import RedisDCToolTestSupport

@Suite("The help of redisdc")
struct HelpTests {
    @Test("each command has an example, which the parser accepts")
    func examples() throws {
        let commands = ListedCommand.all
        #expect(commands.count > 40)
        for listed in commands {
            let (words, command) = (listed.words, listed.type)
            let name = words.joined(separator: " ")
            let lines = command.helpMessage().split(separator: "\n").map { $0.drop { $0 == " " } }
            let start = try #require(lines.firstIndex { $0.hasPrefix("EXAMPLE") }, "\(name) has no example")
            let examples = command.configuration.discussion.split(separator: "\n").filter { $0.hasPrefix("  redisdc ") }
            #expect(!examples.isEmpty && lines.count > start + 1)
            for example in examples {
                // The shell's part of it.
                let text = example.split(separator: " && ")[0].replacing("'", with: "").replacing("\"", with: "")
                let arguments = text.split(separator: " ").map { String($0) }
                #expect(arguments.starts(with: words), "\(text) is not an example of \(name)")
                let parsed = try Tool.parseAsRoot(Array(arguments.dropFirst()))
                #expect(type(of: parsed) == command, "\(text)")
            }
        }
    }
}
