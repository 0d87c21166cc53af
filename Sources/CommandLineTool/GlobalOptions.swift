package import ArgumentParser
import Foundation
package import Hiredis
import RedisDCTesting

/// The options that every command accepts: the server, its certificate authority, and the output
/// format.
package struct GlobalOptions: ParsableArguments {
    @Option(
        name: .customLong("redis"),
        help: ArgumentHelp(
            "The server: redis://[user:password@]host[:port][/db], rediss://… for TLS, or unix:///path. (default: $REDIS_URL, else redis://127.0.0.1:6379)",
            valueName: "url"))
    package var url: String?

    @Option(
        help: ArgumentHelp(
            "A PEM file with the certificate authorities to trust, for rediss:// URLs.", valueName: "file"))
    package var cacert: String?

    @Flag(help: "Print JSON, one object per line.")
    package var json = false

    package init() {}

    /// The value of `$REDIS_URL`; `nil` when it is unset or empty.
    private static var environmentURL: String? {
        ProcessInfo.processInfo.environment["REDIS_URL"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The URL of `--redis` or `$REDIS_URL`; `nil` when neither is set.
    package var chosenURL: String? { url ?? Self.environmentURL }

    package func configuration() throws -> RedisConfiguration {
        var configuration = try RedisConfiguration(url: chosenURL ?? "redis://127.0.0.1:6379")
        configuration.clientName = "redisdc-tool"
        // Long enough for a restart of Redis, short enough for a person who waits for the error.
        configuration.commandTimeout = .seconds(5)
        if let cacert {
            guard configuration.tls != nil else { throw ValidationError("--cacert requires a rediss:// URL") }
            configuration.tls?.authority = .file(cacert)
        }
        return configuration
    }

    /// Runs `body` with a client that has reached the server.
    package func withRedis(_ body: (RedisClient) async throws -> Void) async throws {
        try await withRedisClient(configuration()) { redis in
            do throws(RedisError) {
                _ = try await redis.send("PING")
            } catch {
                if error.code == .timedOut { throw error.underlying ?? error }
                // A server that refuses PING has been reached too.
                if error.code != .notPermitted { throw error }
            }
            try await body(redis)
        }
    }

    /// Runs `body` with the chosen server, or with a private one that ends with `body` if none is
    /// chosen.
    ///
    /// - Parameter body: receives these options with the server's URL in them, and the port of a
    ///   private server.
    package func withServer(_ body: (GlobalOptions, _ privatePort: Int?) async throws -> Void) async throws {
        var options = self
        if let url = chosenURL {
            options.url = url
            try await body(options, nil)
        } else {
            try await withLocalRedis { server in
                var options = options
                options.url = server.url
                try await body(options, server.port)
            }
        }
    }

    /// Prints `text`, or with `--json` prints `value` as one line of JSON.
    package func report(_ text: @autoclosure () -> String, _ value: some Encodable) throws {
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            print(String(decoding: try encoder.encode(value), as: UTF8.self))
        } else {
            print(text())
        }
        // A reader at the other end of a pipe receives each line at once.
        fflush(nil)
    }
}
