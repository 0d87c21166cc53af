import Foundation
import TestSupport
import Testing

@Suite("The standard streams of the tools")
struct StandardStreamTests {
    @Test("no source of the tools writes to the standard streams in another way")
    func sources() throws {
        let others = try Regex(
            #"\b(print|debugPrint|dump|fputs|fputc|putchar|puts|fwrite|fprintf|vprintf|fflush)\(|FileHandle\.standard(Output|Error)|STD(OUT|ERR)_FILENO|\bstd(out|err)\b"#
        )
        var count = 0
        for folder in ["Sources/RedisDCTool", "Sources/CommandLineTool", "Examples/LittleBook/Tool"] {
            let folder = packageRoot.appendingPathComponent(folder)
            let files = try #require(FileManager.default.enumerator(atPath: folder.path))
            for case let file as String in files where file.hasSuffix(".swift") && file != "StandardOutput.swift" {
                count += 1
                let path = folder.appendingPathComponent(file)
                for (number, line) in try String(contentsOf: path, encoding: .utf8).split(
                    separator: "\n", omittingEmptySubsequences: false
                ).enumerated() {
                    // A worker process inherits the standard error of its parent.
                    if line.contains("2: STDERR_FILENO") { continue }
                    #expect(
                        !line.contains(others), "\(path.path):\(number + 1): use StandardOutput or StandardError")
                }
            }
        }
        #expect(count > 60)
    }
}
