// The arguments of the scripts `listen` and `check`.
import Hiredis

extension Partition {
    /// The phase of a poll: one call of `listen`.
    enum PollPhase: UInt8 {
        /// It reads again.
        case continues = 0
        /// It begins, or may have begun.
        case begins = 1
        /// There is no poll, only an acknowledgement.
        case acknowledges = 2
        /// There is no poll: the device becomes known, or is seen again.
        case registers = 3
    }

    /// The arguments of the script `listen`.
    ///
    /// - Parameters:
    ///   - readsAhead: whether the cursor is only the position after which to read, and acknowledges nothing.
    ///   - requiresDevice: whether a device that the mailbox does not have is refused.
    ///   - registrationLifetime: in milliseconds; 0 does not register the process.
    ///   - cursor: `nil` for the position that the device has acknowledged.
    func listenArguments(
        _ device: String, _ phase: PollPhase, readsAhead: Bool = false, requiresDevice: Bool = false, poll: UInt64,
        registrationLifetime: Int, cursor: Cursor?, maxMessages: Int, maxBytes: Int
    ) -> [RedisArgument] {
        var request = target
        request.byte(phase.rawValue + (readsAhead ? 4 : 0) + (requiresDevice ? 8 : 0))
        request.raw(process.utf8)
        request.number(Int(poll))
        request.number(registrationLifetime)
        request.number(cursor?.index ?? -1)
        request.uint64(cursor?.epoch ?? 0)
        request.uint64(cursor?.tag ?? 0)
        request.number(maxMessages)
        request.number(maxBytes)
        request.raw(limits[MailboxLimits.listenPart])
        return [.bytes(request.bytes), .string(device)]
    }

    /// One of the arguments of the script `check` for a call that waits.
    func checkArgument(_ device: String, poll: UInt64, cursor: Cursor) -> RedisArgument {
        var wait = PackedBytes()
        wait.cursor(cursor)
        wait.number(Int(poll))
        wait.raw(device.utf8)
        return .bytes(wait.bytes)
    }
}
