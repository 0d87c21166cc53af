// Helpers that the tests of mailboxes share.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen

/// Runs a private server with a post office, and a client for observation.
func withOffice<Result>(
    _ server: LocalRedis.Configuration = .init(), configure: (inout PostOfficeConfiguration) -> Void = { _ in },
    _ body: (PostOffice, _ redis: RedisClient, LocalRedis) async throws -> Result
) async throws -> Result {
    var configuration = PostOfficeConfiguration()
    configuration.callTimeout = patience
    configure(&configuration)
    return try await withServer(server) { server, redis, other in
        try await withPostOffice(redis: redis, configuration: configuration) { office in
            try await body(office, other, server)
        }
    }
}

/// The number of scripts that the server has run, except those with which post offices look for sends that are due.
func mailScriptCalls(_ redis: RedisClient) async throws -> Int {
    // Each of these runs the command twice, and no other script of one partition runs it. A script that the server does not
    // know yet has failed, and is run again.
    let counts = try await redis.callCounts()
    return RedisClient.scriptCalls(in: counts) - counts["evalsha failed", default: 0]
        - counts["zrangebyscore", default: 0] / 2
}

/// Returns the error that `body` throws, if it is a `QueueListenError`.
func errorOf(_ body: () async throws -> Void) async -> QueueListenError? {
    do {
        try await body()
        return nil
    } catch { return error as? QueueListenError }
}

extension Delivery {
    /// The texts of the messages, or the status in a word, for comparisons.
    var word: String {
        switch status {
        case .messages(let messages): messages.map(\.text).joined(separator: " ")
        case .timedOut: "timedOut"
        case .reset: "reset"
        case .forked: "forked"
        case .truncated(let first): "truncated \(first)"
        case .superseded: "superseded"
        }
    }
}

extension Delivery.Status {
    var isLoss: Bool {
        switch self {
        case .reset, .forked, .truncated: true
        default: false
        }
    }
}

extension Mailbox {
    /// Reads once, without waiting.
    func look(after cursor: Cursor? = nil, device: String = Self.defaultDevice, limit: Int = 1000) async throws
        -> Delivery
    {
        try await listen(after: cursor, device: device, limit: limit, timeout: .zero)
    }
}

extension PostOffice {
    /// Returns when this many calls wait in the mailbox's partition.
    func untilWaiting(_ count: Int, at mailbox: String) async throws {
        let listeners = try self.mailbox(mailbox).listeners
        try await until("\(count) calls wait") { await listeners.waitingCount == count }
    }
}
