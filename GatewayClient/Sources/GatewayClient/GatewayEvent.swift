/// An element of ``GatewayClient/messages(after:)``.
public enum GatewayEvent: Sendable, Hashable {
    /// The next message.
    case message(GatewayMessage)
    /// Messages are missing here, or some will be delivered a second time. A reader that derives a
    /// state from the messages reloads that state.
    case gap(GatewayGap)
    /// A newer reader of the device has begun: this one has ended. Do not begin another one without
    /// asking the user.
    case superseded

    /// The position after the event; `nil` for ``superseded``.
    public var cursor: String? {
        switch self {
        case .message(let message): message.cursor
        case .gap(let gap): gap.cursor
        case .superseded: nil
        }
    }
}

/// The report of a loss: see the statuses of `GET /v1/mail` in docs/http.md.
public struct GatewayGap: Sendable, Hashable {
    /// The extent of the loss.
    public enum Loss: Sendable, Hashable {
        /// The mailbox was deleted or lost; what it contained and was not read is lost.
        case reset
        /// Redis has lost the end of the mailbox that this device has seen; messages may come a second
        /// time.
        case forked
        /// Messages before the one with the index `first` were deleted, because the mailbox was full
        /// or they were too old.
        case truncated(first: Int?)
    }

    /// The extent of the loss.
    public let loss: Loss
    /// The position at which reading continues.
    public let cursor: String

    /// Reads the report of a loss.
    ///
    /// - Throws: `.unexpectedReply` for an unknown status, or without a cursor.
    init(status: String?, first: Int?, cursor: String?) throws(GatewayError) {
        guard let cursor, !cursor.isEmpty else { throw GatewayError(.unexpectedReply, "a gap has no cursor") }
        self.cursor = cursor
        switch status {
        case "reset": loss = .reset
        case "forked": loss = .forked
        case "truncated": loss = .truncated(first: first)
        default: throw GatewayError(.unexpectedReply, "an unknown status: \(status ?? "none")")
        }
    }
}
