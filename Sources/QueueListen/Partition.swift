// A partition's keys, and what every script is told.
import Hiredis
import CoordinationBase

/// One partition of the namespace, as a post office sees it. A class, so that mailboxes and the frames of those who listen
/// are small.
final class Partition: Sendable {
    let namespace: Namespace
    let number: Int
    let limits: [RedisArgument]
    /// Names this process where it waits: 16 characters.
    let process: String
    let meta: String
    private let prefix: String

    init(_ namespace: Namespace, number: Int, limits: MailboxLimits, process: String) {
        self.namespace = namespace
        self.number = number
        self.limits = limits.words.map { .string($0) }
        self.process = process
        meta = namespace.key("meta", partition: number)
        prefix = String(meta.dropLast(4))
    }

    /// How many partitions there are.
    var total: Int { namespace.partitions }

    func box(_ name: String) -> String { prefix + "box:" + name }
    func mail(_ name: String) -> String { prefix + "mail:" + name }
    func sent(_ sender: String) -> String { prefix + "sent:" + sender }
    /// Sends across partitions whose home this is: one of them, and those that are not finished.
    func split(_ id: String) -> String { prefix + "split:" + id }
    var splits: String { prefix + "splits" }
    func keys(_ name: String) -> [String] { [meta, box(name), mail(name)] }

    /// Where this process hears of what has come, and where all hear of mailboxes that were made anew.
    var channels: (own: String, all: String) { (prefix + "wake:" + process, prefix + "wake:all") }

    /// The first arguments of every script that opens a mailbox, with an epoch in case it makes one.
    var head: [RedisArgument] { [.integer(total), .bytes(UInt64.random(in: 1 ... .max).mark)] }
}
