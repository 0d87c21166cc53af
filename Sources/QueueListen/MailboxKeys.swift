package import CoordinationBase

/// The names of the mailboxes' keys and channels in one partition of a namespace.
///
/// `docs/wire-format.md` describes what they contain.
package struct MailboxKeys: Sendable {
    /// The key of what all mailboxes of the partition have in common.
    package let meta: String
    private let prefix: String

    package init(_ namespace: Namespace, partition: Int) {
        meta = namespace.key("meta", partition: partition)
        prefix = String(meta.dropLast(4))
    }

    /// The state of a mailbox.
    package func box(_ name: String) -> String { prefix + "box:" + name }

    /// The messages of a mailbox.
    package func mail(_ name: String) -> String { prefix + "mail:" + name }

    /// The jobs of a mailbox.
    package func work(_ name: String) -> String { prefix + "work:" + name }

    /// The jobs of a mailbox that wait for a worker.
    package func jobs(_ name: String) -> String { prefix + "jobs:" + name }

    /// The jobs of a mailbox that have failed for good.
    package func dead(_ name: String) -> String { prefix + "dead:" + name }

    /// The keys of the scripts that use the jobs of one mailbox, in the order of their `KEYS`.
    package func jobKeys(_ name: String) -> [String] { [work(name), jobs(name), dead(name)] }

    /// The keys of the scripts that use one mailbox, in the order of their `KEYS`: the partition's, state and messages.
    package func scriptKeys(_ name: String) -> [String] { [meta, box(name), mail(name)] }

    /// The answers to a sender's requests.
    package func sent(_ sender: String) -> String { prefix + "sent:" + sender }

    /// The record of a cross-partition send whose home is this partition.
    package func sendRecord(_ id: String) -> String { prefix + "split:" + id }

    /// The ids of the unfinished cross-partition sends whose home is this partition.
    package var unfinishedSends: String { prefix + "splits" }

    /// The record of a send that is due later, whose home is this partition.
    package func laterRecord(_ id: String) -> String { prefix + "later:" + id }

    /// The ids of the sends that are due later, and not finished, whose home is this partition.
    package var laterSends: String { prefix + "laters" }

    /// The channel on which a process is notified.
    package func wakeUpChannel(of process: String) -> String { prefix + "wake:" + process }

    /// The channel on which all processes are notified of mailboxes that were created again.
    package var commonChannel: String { prefix + "wake:all" }
}

extension Namespace {
    /// The namespace of mailboxes with this name. Coordination can use the same name.
    package static func ofMailboxes(_ name: String, partitions: Int) -> Namespace {
        Namespace(name, partitions: partitions, prefix: "ql")
    }
}
