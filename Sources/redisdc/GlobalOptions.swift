import ArgumentParser
import Foundation
import Hiredis

/// What every command takes.
struct GlobalOptions: ParsableArguments {
    @Option(
        name: .customLong("redis"),
        help:
            "redis://[user:password@]host[:port][/db], rediss://… (TLS) or unix:///path. (default: $REDIS_URL, else redis://127.0.0.1:6379)"
    )
    var url: String?

    @Option(help: ArgumentHelp("PEM file with the authorities to believe, for rediss://.", valueName: "file"))
    var cacert: String?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    static var environmentURL: String? {
        ProcessInfo.processInfo.environment["REDIS_URL"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Global options may stand before the command's name too; the parser wants them behind it.
    static func moveBehindCommand(_ arguments: [String]) -> [String] {
        let withValue = ["--redis", "--cacert", "--namespace", "--partitions"]
        var rest = arguments[...]
        var options: [String] = []
        while let first = rest.first {
            if first == "--json" || withValue.contains(where: { first.hasPrefix($0 + "=") }) {
                options.append(rest.removeFirst())
            } else if withValue.contains(first), rest.count > 1 {
                options += [rest.removeFirst(), rest.removeFirst()]
            } else {
                break
            }
        }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        return rest[..<end] + options + rest[end...]
    }

    func configuration() throws -> RedisConfiguration {
        var configuration = try RedisConfiguration(url: url ?? Self.environmentURL ?? "redis://127.0.0.1:6379")
        configuration.clientName = "redisdc-tool"
        // A person waits: long enough for a restart, short enough to be told.
        configuration.commandTimeout = .seconds(5)
        if let cacert {
            guard configuration.tls != nil else { throw ValidationError("--cacert goes with a rediss:// URL") }
            configuration.tls?.authority = .file(cacert)
        }
        return configuration
    }

    /// Runs `body` with a client that has reached the server.
    func withRedis(_ body: (RedisClient) async throws -> Void) async throws {
        try await withRedisClient(configuration()) { redis in
            do throws(RedisError) {
                _ = try await redis.send("PING")
            } catch {
                if error.code == .timedOut { throw error.underlying ?? error }
                // A server that refuses PING has been reached, too.
                if error.code != .notPermitted { throw error }
            }
            try await body(redis)
        }
    }

    /// Prints `text`, or `value` as JSON.
    func report(_ text: @autoclosure () -> String, _ value: some Encodable) throws {
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            print(String(decoding: try encoder.encode(value), as: UTF8.self))
        } else {
            print(text())
        }
        // What reads us through a pipe sees each line when it is there.
        fflush(nil)
    }
}
