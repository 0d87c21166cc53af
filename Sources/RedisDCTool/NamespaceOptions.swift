import ArgumentParser
import CommandLineTool
import CoordinationBase
import Hiredis
import QueueListen

/// The options that select a namespace and its number of partitions.
struct NamespaceOptions: ParsableArguments {
    @Option(help: "The namespace. It separates applications that share a Redis server.")
    var namespace = "default"

    @Option(
        help:
            "The number of partitions of the namespace, 1 to 1,024. (default: as stored in Redis, or 1 for a new namespace)"
    )
    var partitions: Int?

    /// Returns the number of partitions that Redis has stored in the hash at `key`, or else that of
    /// `--partitions`, or else 1.
    ///
    /// - Throws: a ``Failure`` if `--partitions` contradicts the stored number.
    func agreedPartitions(storedAt key: String, _ redis: RedisClient) async throws -> Int {
        let text = try await redis.send("HGET", .string(key), "partitions").string
        let stored = text.flatMap { Int(StoredLayout.parse($0).partitions) }
        if let stored, let partitions, stored != partitions {
            throw Failure(
                .badData,
                "cannot use namespace \"\(namespace)\" with --partitions \(partitions): it has \(stored) partitions")
        }
        return partitions ?? stored ?? 1
    }

    /// Returns the number of partitions of the namespace's mailboxes, as ``agreedPartitions(storedAt:_:)`` does.
    func agreedMailPartitions(_ redis: RedisClient) async throws -> Int {
        let keys = MailboxKeys(.ofMailboxes(namespace, partitions: 1), partition: 0)
        return try await agreedPartitions(storedAt: keys.meta, redis)
    }
}
