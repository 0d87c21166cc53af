import CoordinationBase
import Hiredis

/// A reader of a mailbox whose position is separate from what its device has acknowledged.
///
/// ```swift
/// let reader = try mailbox.reader(device: "phone")
/// var cursor: Cursor?                        // nil: after the last acknowledged message
/// while true {
///     let delivery = try await reader.listen(after: cursor, timeout: .seconds(30))
///     …                                      // pass the messages on
///     cursor = delivery.cursor
/// }
/// ```
///
/// Use it to pass messages on to a client that acknowledges later, over another connection or at
/// another node. Reading deletes nothing: only ``acknowledge(_:)`` and
/// ``Mailbox/acknowledge(_:device:)`` do. When the reader dies, the next one continues after the
/// last acknowledged message, or at any later position that the client names.
///
/// **Guarantees**
/// - All calls of a reader belong together: when a newer reader or `listen` of the device has begun,
///   in this process or another one, the older reader receives ``Delivery/Status/superseded`` and
///   never becomes the current one again. A plain ``Mailbox/listen(after:device:limit:maxBytes:timeout:)``
///   is the newest with each call.
/// - Losses are reported as by `listen`.
///
/// **Limits**
/// - One call at a time: a second one ends the first with `superseded`.
public final class DeviceReader: Sendable {
    /// The mailbox.
    public let mailbox: Mailbox
    /// The device as which it reads.
    public let device: String
    /// Whether its calls throw `.unknownDevice` if the mailbox does not have the device.
    public let requiresDevice: Bool
    private let poll: UInt64
    private let state = Locked(State())

    private struct State {
        var phase = Phase.new
        var isCancelled = false
        /// The call in progress, or the last one.
        var callID: UInt64?
    }

    private enum Phase {
        case new
        /// The server has answered a call.
        case begun
        case superseded
    }

    init(_ mailbox: Mailbox, device: String, requiresDevice: Bool) {
        self.mailbox = mailbox
        self.device = device
        self.requiresDevice = requiresDevice
        poll = mailbox.listeners.nextPoll()
    }

    /// Returns the messages after a cursor, and waits for one if there is none. Acknowledges
    /// nothing.
    ///
    /// Everything else is as for ``Mailbox/listen(after:device:limit:maxBytes:timeout:)``. After a
    /// call has returned ``Delivery/Status/superseded``, all calls do.
    ///
    /// - Parameters:
    ///   - cursor: the position after which to read. `nil` continues after the last message that
    ///     the device has acknowledged.
    ///   - limit: the maximum number of messages, 1 to 10,000. One call returns at most 1,000.
    ///   - maxBytes: the maximum number of bytes, from 1. One call returns at most 1 MiB, and one
    ///     message even if it is larger.
    ///   - timeout: the maximum time to wait, 0 or more. `nil` waits without a limit.
    /// - Throws: the codes of ``Mailbox/listen(after:device:limit:maxBytes:timeout:)``; `.cancelled`
    ///   also after ``cancel()``; `.unknownDevice` if the reader requires its device.
    public func listen(
        after cursor: Cursor? = nil, limit: Int = 1000, maxBytes: Int = 1024 * 1024, timeout: Duration? = nil
    ) async throws(QueueListenError) -> Delivery {
        let phase = state.withLock { $0.phase }
        if phase == .superseded { return Delivery(.superseded, cursor: cursor ?? .none) }
        let call = try mailbox.pendingListen(
            after: cursor, device,
            ListenRequest.Reader(poll: poll, hasBegun: phase == .begun, requiresDevice: requiresDevice),
            limit, maxBytes, timeout)
        let isCancelled = state.withLock { state in
            state.callID = call.id
            return state.isCancelled
        }
        if isCancelled { throw Listeners.cancellation.prefixed(mailbox.failure("listen to")) }
        let delivery = try await mailbox.listen(call) {
            // A cancellation before the start found no call to cancel.
            if state.withLock({ $0.isCancelled }) { mailbox.listeners.cancel(call.id) }
        }
        state.withLock { $0.phase = if case .superseded = delivery.status { .superseded } else { .begun } }
        return delivery
    }

    /// Ends the call of `listen` in progress, if there is one, and all later ones, with `.cancelled`.
    ///
    /// It is the cancellation of the caller's task without a task: use it where another event than
    /// the task's cancellation ends the reading, and the task goes on. Any thread may call it.
    /// Acknowledgements remain possible.
    public func cancel() {
        let callID = state.withLock { state in
            state.isCancelled = true
            return state.callID
        }
        if let callID { mailbox.listeners.cancel(callID) }
    }

    /// Acknowledges messages up to a cursor: see ``Mailbox/acknowledge(_:device:)``.
    ///
    /// A superseded reader may acknowledge too: what a client has processed is processed.
    ///
    /// - Returns: whether the cursor is valid.
    /// - Throws: the codes of ``Mailbox/acknowledge(_:device:)``; `.unknownDevice` if the reader
    ///   requires its device.
    @discardableResult
    public func acknowledge(_ cursor: Cursor) async throws(QueueListenError) -> Bool {
        try await mailbox.acknowledge(cursor, device: device, requiresDevice: requiresDevice)
    }
}

extension Mailbox {
    /// Creates a reader of a device whose position is separate from what the device acknowledges.
    /// Nothing is sent.
    ///
    /// - Parameters:
    ///   - device: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    ///   - requiresDevice: whether the reader fails with `.unknownDevice` where the mailbox does not
    ///     have the device, instead of making it known. Use it where devices are registered with
    ///     ``register(device:)`` and end with ``forget(device:)``: a process that is held up while a
    ///     device is forgotten then does not bring it back by its next read.
    /// - Throws: `.invalidArgument`.
    public func reader(
        device: String = Self.defaultDevice, requiresDevice: Bool = false
    ) throws(QueueListenError) -> DeviceReader {
        try validate(device: device, "listen to")
        return DeviceReader(self, device: device, requiresDevice: requiresDevice)
    }
}
