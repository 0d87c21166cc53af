/// The reason why messages may be missing.
public enum MailboxGap: Sendable, Hashable {
    /// The mailbox was lost or deleted. See ``Delivery/Status/reset``.
    case reset
    /// Redis has lost the end of the mailbox. See ``Delivery/Status/forked``.
    case forked
    /// Messages before the one with the index `first` are gone. See
    /// ``Delivery/Status/truncated(first:)``.
    case truncated(first: Int)
}
