// Removes the keys of a run.
import CoordinationBase
import Hiredis
import QueueListen
import RedisDC

/// Removes all keys of a namespace, and no others.
struct Cleanup {
    let redis: RedisClient
    let namespace: String
    let partitions: Int

    /// Removes the keys. A user without the right to `SCAN` removes those whose names are known; the others expire.
    ///
    /// - Returns: what could not be removed, in words; `nil` if everything was.
    func run() async -> String? {
        do throws(RedisError) {
            for master in try await redis.masters() { try await scan(master) }
            return nil
        } catch {
            guard error.code == .notPermitted else { return message(error) }
        }
        do throws(RedisError) {
            for partition in 0..<partitions {
                for key in EngineKeys(Namespace(namespace, partitions: partitions)).scriptKeys(partition: partition) {
                    _ = try await redis.send("DEL", .string(key))
                }
                let mail = MailboxKeys(.ofMailboxes(namespace, partitions: partitions), partition: partition)
                let boxes = Workload.mailboxes.flatMap { [mail.box($0), mail.mail($0)] }
                for key in [mail.meta, mail.unfinishedSends] + boxes {
                    _ = try await redis.send("UNLINK", .string(key))
                }
            }
            return "the user may not use SCAN: some keys of \(namespace) remain until they expire"
        } catch {
            return message(error)
        }
    }

    private func scan(_ master: RedisMaster) async throws(RedisError) {
        for prefix in ["rdc", "ql"] {
            var cursor = "0"
            repeat {
                let pattern = RedisArgument.string("\(prefix):{\(namespace):*")
                let page =
                    try await master.send(["SCAN", .string(cursor), "MATCH", pattern, "COUNT", 1000]).array ?? []
                cursor = page.first?.string ?? "0"
                let keys = page.last?.array?.compactMap(\.string) ?? []
                if keys.isEmpty { continue }
                // One by one, because the keys of a cluster are in several slots.
                for reply in try await master.pipeline(keys.map { ["UNLINK", .string($0)] }) {
                    if case .error(let error) = reply { throw RedisError(.serverError, "\(error)") }
                }
            } while cursor != "0"
        }
    }

    private func message(_ error: RedisError) -> String {
        "cannot remove the keys of \(namespace): \(error.message)"
    }
}
