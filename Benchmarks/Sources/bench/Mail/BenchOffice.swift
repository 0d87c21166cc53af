import Hiredis
import QueueListen

/// Runs a body with a client and a post office in their default configuration, except that no mailbox is ever full.
/// `CLIENT LIST` shows the connections under the name of the namespace.
func withBenchOffice<Result>(
    url: String, namespace: String, partitions: Int = 1, _ body: (RedisClient, PostOffice) async throws -> Result
) async throws -> Result {
    var client = try RedisConfiguration(url: url)
    client.clientName = namespace
    var configuration = PostOfficeConfiguration()
    configuration.limits = .bench
    configuration.partitions = partitions
    return try await withRedisClient(client) { redis in
        try await withPostOffice(redis: redis, namespace: namespace, configuration: configuration) { office in
            try await body(redis, office)
        }
    }
}

extension MailboxLimits {
    /// Limits that the benchmarks never reach.
    static var bench: MailboxLimits {
        var limits = MailboxLimits()
        limits.maxMessages = 100_000_000
        limits.maxBytes = 1 << 30
        return limits
    }
}

extension Message {
    /// A message of 256 bytes.
    static let bench = Message(bytes: [UInt8](repeating: UInt8(ascii: "x"), count: 256))
}

extension PostOffice {
    /// Puts `count` messages into a mailbox, 500 with each send.
    func fill(_ name: String, with count: Int) async throws {
        for start in stride(from: 0, to: count, by: 500) {
            try await send(Array(repeating: .bench, count: min(500, count - start)), to: [name])
        }
    }
}
