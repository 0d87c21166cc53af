import Foundation
import NIOCore

/// One direction of a proxied connection: a queue from one socket to the other that keeps the
/// order.
///
/// A lane is confined to its event loop. When its queue is full it stops reading from the source,
/// and TCP flow control stops the sender.
final class ProxyLane {
    /// An element of the queue.
    enum Item {
        case bytes(ByteBuffer)
        /// The source has finished sending, and may still receive.
        case halfClose
        /// The source has closed the connection.
        case close
        /// The source has reset the connection.
        case reset
    }

    /// The queue length, in bytes, at which the lane stops reading from the source. SwiftNIO may
    /// still read the bytes that the kernel holds when the source closes.
    static let maxQueuedBytes = 1 << 20

    private let loop: any EventLoop
    /// The two ends of the lane; nil until the connection to the server is established.
    private var source: (any Channel)?
    private var target: (any Channel)?
    private var queue = CircularBuffer<(item: Item, due: NIODeadline)>()
    private var queuedBytes = 0
    private var timer: Scheduled<Void>?
    private var isWriting = false
    private var isDraining = false
    private var isDiscarding = false

    /// The delay of the items that are queued from now on.
    var delay = TimeAmount.zero
    /// Whether the queue is stopped.
    var isStalled = false {
        didSet { self.drain() }
    }
    /// Called with the bytes of each write, before the write.
    var willWrite: (ByteBuffer) -> Void = { _ in }
    /// Called with each change of the number of buffered bytes; negative when bytes leave the
    /// buffer.
    var didKeep: (Int) -> Void = { _ in }
    /// Called with the number of bytes of each completed write.
    var didWrite: (Int) -> Void = { _ in }
    /// Called when a half-close has been forwarded.
    var didHalfClose: () -> Void = {}

    init(loop: any EventLoop) {
        self.loop = loop
    }

    /// Starts to read from the source and to write to the target.
    func start(from source: any Channel, to target: any Channel) {
        self.source = source
        self.target = target
        self.drain()
        self.readIfWanted()
    }

    func enqueue(_ item: Item) {
        if self.isDiscarding { return }
        // Only the head of the queue is checked: after the delay is shortened, an item still waits for the items ahead.
        self.queue.append((item, .now() + self.delay))
        if case .bytes(let bytes) = item {
            self.queuedBytes += bytes.readableBytes
            self.didKeep(bytes.readableBytes)
        }
        self.drain()
    }

    /// Discards queued and future items, because the target is closed.
    ///
    /// The lane continues to read from the source, to detect its end.
    func discard() {
        self.isDiscarding = true
        self.queue.removeAll()
        if self.queuedBytes > 0 { self.didKeep(-self.queuedBytes) }
        self.queuedBytes = 0
        self.timer?.cancel()
        self.readIfWanted()
    }

    /// Cancels the timer and removes the callbacks that retain the link.
    func finish() {
        self.timer?.cancel()
        self.willWrite = { _ in }
        self.didHalfClose = {}
    }

    /// Reads from the source unless the queue is full.
    func readIfWanted() {
        if self.queuedBytes < Self.maxQueuedBytes { self.source?.read() }
    }

    private func drain() {
        // A write can complete synchronously and call drain() from inside the loop below, which then continues.
        guard !self.isDraining, let target else { return }
        self.isDraining = true
        defer { self.isDraining = false }
        while !self.isWriting, !self.isStalled, let next = self.queue.first {
            guard next.due <= .now() else { return self.drain(at: next.due) }
            self.queue.removeFirst()
            self.pass(next.item, to: target)
        }
    }

    private func drain(at time: NIODeadline) {
        self.timer?.cancel()
        self.timer = self.loop.assumeIsolated().scheduleTask(deadline: time) { self.drain() }
    }

    private func pass(_ item: Item, to target: any Channel) {
        switch item {
        case .bytes(let bytes):
            self.queuedBytes -= bytes.readableBytes
            self.write(bytes, to: target)
        case .halfClose:
            target.close(mode: .output, promise: nil)
            self.didHalfClose()
        case .close:
            target.close(promise: nil)
        case .reset:
            target.closeWithReset()
        }
    }

    private func write(_ bytes: ByteBuffer, to target: any Channel) {
        self.isWriting = true
        self.willWrite(bytes)
        target.writeAndFlush(bytes).assumeIsolated().whenComplete { result in
            self.isWriting = false
            self.didKeep(-bytes.readableBytes)
            if case .success = result { self.didWrite(bytes.readableBytes) }
            self.readIfWanted()
            self.drain()
        }
    }
}

extension Channel {
    /// Closes the channel with a reset (TCP) or in the orderly way (Unix socket).
    func closeWithReset() {
        let promise = self.eventLoop.makePromise(of: Void.self)
        promise.futureResult.whenComplete { _ in self.close(promise: nil) }
        guard let socket = self as? any SocketOptionProvider else { return promise.succeed() }
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).cascade(to: promise)
    }
}
