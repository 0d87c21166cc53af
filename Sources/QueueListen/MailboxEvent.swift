/// An element of ``Mailbox/messages(after:device:limit:)``.
public enum MailboxEvent: Sendable {
    /// The next message.
    case message(ReceivedMessage)
    /// Messages are missing here, or some will be delivered a second time. A reader that derives a
    /// state from the messages reloads that state.
    case gap(MailboxGap)
}
