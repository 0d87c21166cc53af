import Hiredis
import QueueListen

/// A client and a post office as every program has them, but for mailboxes that nothing fills. The namespace is also what
/// `CLIENT LIST` calls the connections.
func withBenchOffice<Result>(
    url: String, namespace: String, _ body: (RedisClient, PostOffice) async throws -> Result
) async throws -> Result {
    var client = try RedisConfiguration(url: url)
    client.clientName = namespace
    var configuration = PostOfficeConfiguration()
    configuration.limits = .bench
    return try await withRedisClient(client) { redis in
        try await withPostOffice(redis: redis, namespace: namespace, configuration: configuration) { office in
            try await body(redis, office)
        }
    }
}

extension MailboxLimits {
    static var bench: MailboxLimits {
        var limits = MailboxLimits()
        limits.maxMessages = 100_000_000
        limits.maxBytes = 1 << 40
        return limits
    }
}

extension Message {
    /// 256 bytes.
    static let bench = Message(bytes: [UInt8](repeating: UInt8(ascii: "x"), count: 256))
}

extension PostOffice {
    /// Puts so many messages into a mailbox, a thousand with each send.
    func fill(_ name: String, with count: Int) async throws {
        for start in stride(from: 0, to: count, by: 1000) {
            try await send(Array(repeating: .bench, count: min(1000, count - start)), to: [name])
        }
    }
}
