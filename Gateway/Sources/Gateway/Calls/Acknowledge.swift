// POST /v1/ack, and the frame `ack` of a WebSocket: acknowledges messages.
import Hummingbird
import QueueListen

/// An acknowledgement of all messages up to a position.
struct AcknowledgeCall: Sendable {
    var cursor: Cursor

    /// - Parameter cursor: the cursor as a text.
    /// - Throws: `malformed`.
    init(_ cursor: JSON?) throws(Problem) {
        guard let cursor = cursor?.string.flatMap({ Cursor($0) }) else {
            throw Problem(.malformed, "an acknowledgement has a cursor")
        }
        self.cursor = cursor
    }
}

extension Gateway {
    func acknowledge(_ request: Request, context: SessionContext<some RequestContext>) async throws -> NoContent {
        let call = try AcknowledgeCall(try JSON(body: context.body, of: request)["cursor"])
        try await acknowledge(call, of: context.session)
        return NoContent()
    }

    /// Acknowledges messages of a session's device.
    ///
    /// - Throws: `cursor`, `QueueListenError`.
    func acknowledge(_ call: AcknowledgeCall, of session: Session) async throws {
        let reader = try reader(for: session)
        let isValid = try await withDevice(of: session, reader) { try await reader.acknowledge(call.cursor) }
        guard isValid else {
            throw Problem(.cursor, "the cursor is not, or no longer, in this mailbox: nothing was acknowledged")
        }
    }

    /// The mailbox of a session's user, as its device reads it. It requires the device: see ``withDevice(of:_:_:)``.
    func reader(for session: Session) throws -> DeviceReader {
        try office.mailbox(session.user).reader(device: session.device, requiresDevice: true)
    }
}
