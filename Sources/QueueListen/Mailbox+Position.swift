// Positions at which a new device can begin to read.
import CoordinationBase
import Hiredis

extension Mailbox {
    /// Returns the position before the last messages of the mailbox: where a device begins that is not to
    /// read everything, such as a new member of a room.
    ///
    /// ```swift
    /// let room = try office.mailbox("room-7")
    /// if try await !room.devices().contains(where: { $0.name == "bob" }) {
    ///     try await room.acknowledge(room.cursor(beforeLast: 50), device: "bob")   // 50 messages back
    /// }
    /// let delivery = try await room.listen(device: "bob", timeout: .seconds(30))
    /// ```
    ///
    /// With 0 it is the end: the device receives what is sent from now on. Messages that are sent
    /// meanwhile come after the position. A device that has read before must not begin again at such a
    /// position, because it would skip what it has not read.
    ///
    /// It changes nothing, and takes at most twice ``PostOfficeConfiguration/callTimeout``.
    ///
    /// - Parameter count: the number of messages, 0 or more, including expired and replaced ones. With
    ///   more than there are, it is the position before the first one that is kept.
    /// - Returns: a position for ``listen(after:device:limit:maxBytes:timeout:)``,
    ///   ``messages(after:device:limit:)`` and ``acknowledge(_:device:)``. ``Cursor/none`` if the mailbox
    ///   does not exist.
    /// - Throws: `.invalidArgument`, and the codes of ``inspect()``.
    public func cursor(beforeLast count: Int = 0) async throws(QueueListenError) -> Cursor {
        guard count >= 0 else {
            throw QueueListenError(.invalidArgument, "count is \(count), expected 0 or more")
                .prefixed(failure("find a position of"))
        }
        while true {
            guard let state = try await inspect() else { return .none }
            let index = max(state.last - count, state.first - 1)
            let reply = try await read(
                run(
                    Scripts.peek,
                    [.bytes(partition.target.bytes), .integer(max(index - 1, 0)), .integer(1), .integer(1)],
                    "find a position of"),
                "find a position of")
            // The message before the position may have been deleted, before or since the inspection. Then the first one
            // that is left comes after it.
            if reply.position.index >= index { return reply.position }
            if reply.end.index == index { return reply.end }
            // The mailbox was deleted since, and has been created again.
        }
    }
}
