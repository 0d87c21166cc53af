import CoordinationBase
import Hiredis
import RedisDC

/// Looks for records of a namespace that cannot be read, or cannot be ended because of another one.
struct DamageCheck {
    let redis: RedisClient
    let namespace: String

    func findings() async -> [Finding] {
        do {
            let state = EngineKeys(Namespace(namespace, partitions: 1)).state(partition: 0)
            guard let stored = try await redis.send("HGET", .string(state), "partitions").string else { return [] }
            var configuration = CoordinatorConfiguration()
            configuration.partitions = Int(StoredLayout.parse(stored).partitions) ?? 1
            let list = try await Coordinator(redis: redis, namespace: namespace, configuration: configuration).list()
            let damaged = Set(list.damaged).sorted { ($0.key, $0.field) < ($1.key, $1.field) }
            guard !damaged.isEmpty else {
                return [Finding(.ok, "records", "none of namespace \(namespace) is damaged")]
            }
            return damaged.map { record in
                let what =
                    record.field.hasPrefix("x:")
                    ? "a claim of a dead process on \"\(record.resource)\" cannot be ended"
                    : "the record of \"\(record.resource)\" is damaged, so operations on it fail"
                return Finding(
                    .bad, "records", "\(what): field \(record.field) of \(record.key)",
                    advice: "find the program that writes to this key, then delete the damaged fields with HDEL")
            }
        } catch {
            // The rights are checked by themselves.
            return [Finding(.note, "records", "not checked: \(error)", advice: "see the other findings")]
        }
    }
}
