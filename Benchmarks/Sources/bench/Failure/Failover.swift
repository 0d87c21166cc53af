import Foundation
import RedisDC

/// One candidate of an election. It prints the time when it becomes the leader, and leads until it is killed.
enum Failover {
    static let ttl = Duration.seconds(3)

    static func run(url: String, prefix: String) async throws {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = ttl
        try await withBenchCoordinator(url: url, namespace: prefix, configuration: configuration) { _, coordinator in
            try await coordinator.election("leader").withLeadership { _ in
                printLine("\(monotonicNow())")
                try await Task.sleep(for: .seconds(3600))
            }
        }
    }

    private static func printLine(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}
