// The devices of a mailbox.
import CoordinationBase
import Hiredis

extension Mailbox {
    /// Returns the devices that have listened to the mailbox and are not forgotten.
    ///
    /// - Throws: the codes of ``inspect()``.
    public func devices() async throws(QueueListenError) -> [MailboxDevice] { try await inspect()?.devices ?? [] }

    /// Forgets a device: no message is kept for it any more.
    ///
    /// A device that listens again afterwards is a new one, which reads from the first message that
    /// is left. A listener that waits is not ended, and makes the device known again the next time
    /// it reads.
    ///
    /// It takes at most ``PostOfficeConfiguration/callTimeout``. A cancelled call throws `.cancelled`
    /// immediately; the device may have been forgotten nevertheless.
    ///
    /// - Parameter device: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    /// - Returns: whether the mailbox had the device.
    /// - Throws: the codes of ``inspect()``, and `.invalidArgument`.
    @discardableResult
    public func forget(device: String) async throws(QueueListenError) -> Bool {
        try validate(device: device, "forget a device of")
        let reply = try await run(
            Scripts.forget, [.bytes(partition.target.bytes), .string(device)], "forget a device of")
        guard let parts = reply.array, parts.count == 2, parts[0].string == "ok", let found = parts[1].integer else {
            throw refusal(reply, "forget a device of")
        }
        return found == 1
    }
}
