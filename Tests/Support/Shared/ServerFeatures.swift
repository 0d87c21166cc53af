import Hiredis
import RedisDCTesting
public import Testing

/// The commands and settings of the server program with which the tests run.
///
/// A running server is asked for them: a program's name and version say little, because builds leave
/// out features. Each question is asked once in a test run.
public enum ServerFeatures {
    /// Returns whether the server knows a command, such as `ssubscribe`, or a subcommand, such as
    /// `cluster|migrateslots`.
    ///
    /// Redis 6.2 knows commands only, and not which subcommands they have.
    public static func has(command: String) async throws -> Bool {
        try await ask("command \(command)") { try await $0.knows(command) }
    }

    /// Returns whether the server has a setting, such as `enable-debug-command`.
    public static func has(setting: String) async throws -> Bool {
        try await ask("setting \(setting)") { redis in
            try await redis.send("CONFIG", "GET", .string(setting)).array?.isEmpty == false
        }
    }

    /// Returns whether the server can be started with a TLS port. A build without TLS may have its
    /// settings all the same.
    public static func hasTLS() async throws -> Bool {
        guard try await has(setting: "tls-port") else { return false }
        return try await Answers.shared.answer(to: "TLS") {
            do {
                return try await withTestCertificates { certificates in
                    try await withLocalRedis(.init(tls: certificates)) { _ in true }
                }
            } catch let error as LocalRedisError {
                // Any other failure fails the test: a server with TLS must start.
                if error.description.contains("connection type tls") { return false }
                throw error
            }
        }
    }

    /// Returns whether `min-replicas-to-write` applies to the writes of scripts, as since Redis 7.0.
    public static func scriptsNeedReplicas() async throws -> Bool {
        try await ask("min-replicas-to-write for scripts") { redis in
            _ = try await redis.send("CONFIG", "SET", "min-replicas-to-write", 1)
            do throws(RedisError) {
                _ = try await redis.script(RedisScript("return redis.call('SET', KEYS[1], '')"), keys: ["key"])
                return false
            } catch {
                if error.code == .readOnly { return true }
                throw error
            }
        }
    }

    /// Asks a server of its own.
    private static func ask(
        _ question: String, _ body: @escaping @Sendable (RedisClient) async throws -> Bool
    ) async throws -> Bool {
        try await Answers.shared.answer(to: question) {
            try await withLocalRedis { server in
                try await withRedisClient(url: server.unixURL) { try await body($0) }
            }
        }
    }

    private actor Answers {
        static let shared = Answers()
        private var answers: [String: Task<Bool, any Error>] = [:]

        func answer(
            to question: String, _ ask: @escaping @Sendable () async throws -> Bool
        ) async throws -> Bool {
            let answer = answers[question] ?? Task { try await ask() }
            answers[question] = answer
            return try await answer.value
        }
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test if the server does not know a command: see ``ServerFeatures/has(command:)``.
    public static func needs(command: String) -> Self {
        .enabled("the server has no command \(command)") { try await ServerFeatures.has(command: command) }
    }

    /// Skips a test if the server or this package is built without TLS.
    public static var needsTLS: Self {
        #if TLSSupport
            .enabled("the server has no TLS") { try await ServerFeatures.hasTLS() }
        #else
            .disabled("this package is built without TLS")
        #endif
    }

    /// Skips a test unless `min-replicas-to-write` applies to scripts.
    ///
    /// - Parameter expected: if false, skips the test if it does apply.
    public static func scriptsNeedReplicas(_ expected: Bool = true) -> Self {
        .enabled("min-replicas-to-write \(expected ? "does not apply" : "applies") to scripts on this server") {
            try await ServerFeatures.scriptsNeedReplicas() == expected
        }
    }

    /// Skips a test if the server does not have a setting: see ``ServerFeatures/has(setting:)``.
    public static func needs(setting: String) -> Self {
        .enabled("the server has no setting \(setting)") { try await ServerFeatures.has(setting: setting) }
    }
}
