// Compares docs/observability.md with the sources.
import Foundation
import TestSupport
import Testing

@Suite("Documented metrics, spans and logs")
struct DocumentedInstrumentsTests {
    /// The places of the names in the sources.
    private static var patterns: [(kind: String, pattern: Regex<(Substring, Substring)>)] {
        [
            ("metric", /(?:label: |counter\()"([a-z]+_[a-z_]+)"/),
            ("span", /(?:traced|withSpan|startSpan)\(\s*"([^"]+)"/),
            ("log message", /logger\??\s*\.(?:trace|debug|info|notice|warning|error|critical)\(\s*"([^"]+)"/),
            ("log message", /logger\??\s*\.log\(level: \w+,\s*"([^"]+)"/),
            ("log key", /"(\w+)": "\\\(/),
            ("log key", /static let \w+ = "(redis_\w+)"/),
        ]
    }

    /// The names in a source file, by kind.
    static func names(in source: String) -> [(kind: String, name: String)] {
        patterns.flatMap { kind, pattern in
            source.matches(of: pattern).compactMap { match in
                // Keys are only those of metadata: other dictionaries have texts too.
                let name = String(match.output.1)
                guard kind == "log key", !name.hasPrefix("redis_") else { return (kind, name) }
                let before = source[..<match.range.lowerBound].suffix(200)
                guard let start = before.ranges(of: "metadata: [").last else { return nil }
                return before[start.upperBound...].contains("])") ? nil : (kind, name)
            }
        }
    }

    private static var sources: [URL] {
        ["Sources/Hiredis", "Sources/RedisDC", "Sources/QueueListen", "Sources/GameServices", "Gateway/Sources"]
            .flatMap { folder in
                FileManager.default.enumerator(
                    at: packageRoot.appendingPathComponent(folder), includingPropertiesForKeys: nil)?
                    .compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" } ?? []
            }
    }

    @Test("docs/observability.md has a line for each metric, span, log message and log key, and no other lines")
    func complete() throws {
        let page = try String(
            contentsOf: packageRoot.appendingPathComponent("docs/observability.md"), encoding: .utf8)
        var found: Set<String> = []
        for file in Self.sources {
            for (kind, name) in Self.names(in: try String(contentsOf: file, encoding: .utf8)) {
                found.insert(name)
                #expect(page.contains("`\(name)`"), "\(kind) `\(name)` of \(file.lastPathComponent) has no line")
            }
        }
        #expect(found.count > 90)
        for row in page.matches(of: /(?m)^\| `([^`]+)`/) {
            #expect(found.contains(String(row.output.1)), "`\(row.output.1)` is not in the sources")
        }
    }

    @Test("names are found in the forms that sources have")
    func forms() {
        let source = #"""
            commands = Counter(label: "redis_new", factory: factory)
            ended = counter("matchmaker_new")
            await traced("redisdc new", body)
            backends.logger?.warning(
                "something is new", metadata: ["redisdc_new": "\(error)", "redisdc_more": "\(id)"])
            let other = ["no_key": "\(value)"]
            """#
        let names = Self.names(in: source).map { "\($0.kind): \($0.name)" }
        #expect(
            Set(names) == [
                "metric: redis_new", "metric: matchmaker_new", "span: redisdc new", "log message: something is new",
                "log key: redisdc_new", "log key: redisdc_more",
            ])
    }
}
