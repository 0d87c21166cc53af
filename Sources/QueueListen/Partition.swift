import CoordinationBase
// A partition: its keys, and the arguments that all of its scripts have in common.
import Hiredis

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
    let keys: MailboxKeys

    init(_ namespace: Namespace, number: Int, limits: MailboxLimits, process: String) {
        self.namespace = namespace
        self.number = number
        self.limits = limits.packed
        self.process = process
        keys = MailboxKeys(namespace, partition: number)
    }

    /// The number of partitions of the namespace.
    var total: Int { namespace.partitions }

    /// The beginning of the first argument of every script that uses one mailbox: the number of
    /// partitions, and an epoch in case the mailbox is created.
    var target: PackedBytes {
        var target = PackedBytes()
        target.uint16(total)
        target.uint64(UInt64.random(in: 1 ... .max))
        return target
    }
}
