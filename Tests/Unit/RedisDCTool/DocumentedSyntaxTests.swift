import ArgumentParser
import Testing

@testable import RedisDCTool
@testable import RedisDCToolTestSupport

@Suite("The syntax of the documented commands")
struct DocumentedSyntaxTests {
    @Test(
        "the parser accepts the commands of a document",
        arguments: [
            ("docs/tool.md", 20), ("docs/services.md", 6), ("docs/verify.md", 2), ("docs/run-a-job-once.md", 1),
            ("docs/limit-a-rate.md", 3), ("Sources/RedisDC/RedisDC.docc/Running.md", 2),
        ])
    func parse(document: String, count: Int) throws {
        let commands = try documentedCommands(of: document)
        #expect(commands.count >= count)
        for command in commands {
            let words = command.replacing("'", with: "").split(separator: " ").map { String($0) }
            #expect(throws: Never.self, "\(command)") { try Tool.parseAsRoot(Array(words.dropFirst())) }
        }
    }
}
