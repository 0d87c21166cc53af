package import ArgumentParser
import Foundation
package import Hiredis

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
        let configuration = try configuration()
        try await withRedisClient(configuration) { redis in
            do throws(RedisError) {
                _ = try await redis.send("PING")
            } catch {
                let cause = error.code == .timedOut ? error.underlying ?? error : error
                // A server that refuses PING has been reached too.
                if error.code != .notPermitted { throw Self.explained(cause, configuration) }
            }
            try await body(redis)
        }
    }

    /// Adds advice to the failure of a connection with TLS. A server without TLS takes the handshake
    /// for the beginning of a command and waits for the rest.
    private static func explained(_ error: any Error, _ configuration: RedisConfiguration) -> any Error {
        guard configuration.tls != nil, var error = error as? RedisError,
            [.cannotConnect, .connectionLost, .timedOut].contains(error.code)
        else { return error }
        error.message += "; if the server does not use TLS, use redis:// instead of rediss://"
        return error
    }

    /// Writes `text`, or with `--json` writes `value` as one line of JSON. A reader at the other end
    /// of a pipe receives each line immediately.
    ///
    /// - Throws: a ``Failure`` if the output cannot be written, and the errors of `value`.
    package func report(_ text: @autoclosure () -> String, _ value: some Encodable) throws {
        try report(bytes: Array(text().utf8), value)
    }

    /// Writes a line of `bytes`, which may be no text, or with `--json` writes `value` as one line of
    /// JSON.
    ///
    /// - Throws: a ``Failure`` if the output cannot be written, and the errors of `value`.
    package func report(bytes: @autoclosure () -> [UInt8], _ value: some Encodable) throws {
        var line: [UInt8]
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            line = [UInt8](try encoder.encode(value))
        } else {
            line = bytes()
        }
        line.append(UInt8(ascii: "\n"))
        try StandardOutput.write(line)
    }
}
