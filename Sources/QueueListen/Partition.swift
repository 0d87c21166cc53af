// A partition's keys and channels, and the arguments that all of its scripts have in common.
import Hiredis
import CoordinationBase

/// One partition of the namespace, as a post office sees it.
///
/// A class, so that mailboxes and the frames of waiting callers are small.
final class Partition: Sendable {
    let namespace: Namespace
    let number: Int
    /// The configured limits in the form of the scripts.
    let limits: [UInt8]
    /// The id of this process: 16 characters.
    let process: String
    let meta: String
    private let prefix: String

    init(_ namespace: Namespace, number: Int, limits: MailboxLimits, process: String) {
        self.namespace = namespace
        self.number = number
        self.limits = limits.packed
        self.process = process
        meta = namespace.key("meta", partition: number)
        prefix = String(meta.dropLast(4))
    }

    /// The number of partitions of the namespace.
    var total: Int { namespace.partitions }

    /// The keys of a mailbox: its state and its messages.
    func box(_ name: String) -> String { prefix + "box:" + name }
    func mail(_ name: String) -> String { prefix + "mail:" + name }
    /// The answers to a sender's requests.
    func sent(_ sender: String) -> String { prefix + "sent:" + sender }
    /// The record of a cross-partition send whose home is this partition.
    func sendRecord(_ id: String) -> String { prefix + "split:" + id }
    /// The ids of the unfinished cross-partition sends whose home is this partition.
    var unfinishedSends: String { prefix + "splits" }
    func keys(_ name: String) -> [String] { [meta, box(name), mail(name)] }

    /// The channel on which this process is notified, and the channel on which all processes are
    /// notified of mailboxes that were created again.
    var channels: (own: String, all: String) { (prefix + "wake:" + process, prefix + "wake:all") }

    /// The beginning of the first argument of every script that uses one mailbox: the number of
    /// partitions, and an epoch in case the mailbox is created.
    var target: PackedBytes {
        var target = PackedBytes()
        target.uint16(total)
        target.uint64(UInt64.random(in: 1 ... .max))
        return target
    }
}
