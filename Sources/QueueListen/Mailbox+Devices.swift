// The devices of a mailbox.
import CoordinationBase
import Hiredis

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Mailbox {
    /// Returns the devices that have listened to the mailbox and are not forgotten.
    ///
    /// - Throws: the codes of ``inspect()``.
    public func devices() async throws(QueueListenError) -> [MailboxDevice] { try await inspect()?.devices ?? [] }

    /// Makes a device known, so that messages are kept for it from now on. Reads nothing.
    ///
    /// A ``listen(after:device:limit:maxBytes:timeout:)`` does this too. Unlike that one, it ends no
    /// other reader of the device. Its ``MailboxDevice/lastSeen`` changes in any case, so that a
    /// ``forget(_:)`` that was decided before does not apply.
    ///
    /// It takes at most ``PostOfficeConfiguration/callTimeout``. Registering twice has no further
    /// effect, so a call that throws can be repeated. A cancelled call throws `.cancelled`
    /// immediately; the device may have become known nevertheless.
    ///
    /// - Parameter device: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    /// - Returns: the position up to which the device has acknowledged messages. ``Cursor/none`` if
    ///   messages after it are gone: the next `listen` reports why.
    /// - Throws: the codes of ``inspect()``, `.invalidArgument`, and `.conflict` if the mailbox has
    ///   64 other devices.
    @discardableResult
    public func register(device: String = Self.defaultDevice) async throws(QueueListenError) -> Cursor {
        try validate(device: device, "register a device of")
        let reply = try await run(
            Scripts.listen,
            partition.listenArguments(
                device, .registers, poll: 0, registrationLifetime: 0, cursor: nil, maxMessages: 0, maxBytes: 1),
            "register a device of")
        let known = try read(reply, "register a device of")
        return known.status == .ok ? known.position : .none
    }

    /// Forgets a device: no message is kept for it any more.
    ///
    /// A device that listens again afterwards is a new one, which reads from the first message that
    /// is left. A listener that waits is not ended, and makes the device known again the next time
    /// it reads, unless it is a reader that requires its device
    /// (``reader(device:requiresDevice:)``): that one ends with `.unknownDevice`.
    ///
    /// It takes at most ``PostOfficeConfiguration/callTimeout``. A cancelled call throws `.cancelled`
    /// immediately; the device may have been forgotten nevertheless.
    ///
    /// - Parameter device: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    /// - Returns: whether the mailbox had the device.
    /// - Throws: the codes of ``inspect()``, and `.invalidArgument`.
    @discardableResult
    public func forget(device: String) async throws(QueueListenError) -> Bool {
        try await forget(device, seen: nil)
    }

    /// Forgets a device, unless it was seen since ``devices()`` has returned it.
    ///
    /// Use it to forget a device because of something that may change at the same moment. Whoever
    /// changes that then calls ``register(device:)``: either the device is forgotten before, and is
    /// a new one, or it stays. Everything else is as for ``forget(device:)``.
    ///
    /// - Returns: whether the device was forgotten: `false` if it was seen since, or forgotten.
    @discardableResult
    public func forget(_ device: MailboxDevice) async throws(QueueListenError) -> Bool {
        try await forget(device.name, seen: device.lastSeen)
    }

    private func forget(_ device: String, seen: Date?) async throws(QueueListenError) -> Bool {
        try validate(device: device, "forget a device of")
        let milliseconds = seen.map { "\(Int(($0.timeIntervalSince1970 * 1000).rounded()))" } ?? ""
        let reply = try await run(
            Scripts.forget, [.bytes(partition.target.bytes), .string(device), .string(milliseconds)],
            "forget a device of")
        guard let parts = reply.array, parts.count == 2, parts[0].string == "ok", let found = parts[1].integer else {
            throw refusal(reply, "forget a device of")
        }
        return found == 1
    }
}
