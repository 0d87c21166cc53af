import ChildProcesses
import Foundation

/// The search for the server program of ``LocalRedis``.
package enum ServerProgram {
    /// The environment variable with the server of a configuration that names none.
    static let variable = "REDISDC_TEST_SERVER"

    /// Returns the path of a server program, or nil if there is none.
    ///
    /// - Parameters:
    ///   - name: a name on the `PATH` or a path. If nil, it is the environment variable
    ///     `REDISDC_TEST_SERVER`; without that, `redis-server` or `valkey-server`.
    ///   - environment: the environment variables.
    package static func find(
        _ name: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        Executable.find(
            Self.chosen(name, environment).map { [$0] } ?? ["redis-server", "valkey-server"],
            searchPath: environment["PATH"] ?? "")
    }

    /// Returns whether the file of a cluster's nodes has the ids of shards, as with Valkey and with Redis
    /// since 7.2. Older servers would take them for a part of a host name.
    ///
    /// - Parameter name: see ``find(_:environment:)``. If there is no such program, the result is false.
    /// - Throws: the error of the system if the program cannot be started.
    static func knowsShardIDs(_ name: String?) async throws -> Bool {
        guard let binary = Self.find(name) else { return false }
        // "Redis server v=7.0.15 sha=00000000:0 …" or "Valkey server v=9.1.2 …"
        let words = try await ChildProcess.run([binary, "--version"]).output.split(separator: " ")
        if words.first == "Valkey" { return true }
        guard let version = words.first(where: { $0.hasPrefix("v=") })?.dropFirst(2) else { return false }
        let numbers = version.split(separator: ".").compactMap { Int($0) }
        return numbers.count >= 2 && (numbers[0], numbers[1]) >= (7, 2)
    }

    /// Returns the program that was asked for, or nil if any server will do.
    static func chosen(
        _ name: String?, _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        // An empty variable counts as none, as in a shell.
        name ?? environment[Self.variable].flatMap { $0.isEmpty ? nil : $0 }
    }
}
