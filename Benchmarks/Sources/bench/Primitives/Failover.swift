import Foundation
import RedisDC

/// One candidate of an election, which leads until it is killed and says when it began.
enum Failover {
    static let ttl = Duration.seconds(3)

    static func run(url: String, prefix: String) async throws {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = ttl
        try await withBenchCoordinator(url: url, namespace: prefix, configuration: configuration) { _, coordinator in
            try await coordinator.election("leader").withLeadership { _ in
                say("\(monotonicNow())")
                try await Task.sleep(for: .seconds(3600))
            }
        }
    }

    private static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}
