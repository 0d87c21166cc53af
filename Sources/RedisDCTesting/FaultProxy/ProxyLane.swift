import Foundation
import NIOCore

/// One direction of a proxied connection: a queue that takes bytes from one side and writes them to the other, in order.
///
/// It belongs to its event loop. What the source sends while the lane is over its limit stays in the kernel, whose
/// window then stops the sender.
final class ProxyLane {
    /// What can be passed on.
    enum Item {
        case bytes(ByteBuffer)
        /// The source sends no more, and may still receive.
        case halfClose
        /// The source is gone.
        case close
        /// The source is gone with a reset.
        case reset
    }

    /// Bytes kept before reading from the source pauses. NIO may read what the kernel still has once the source ends.
    static let limit = 1 << 20

    private let loop: any EventLoop
    /// Where the bytes come from and go; nil until both connections are there.
    private var source: (any Channel)?
    private var target: (any Channel)?
    private var queue = CircularBuffer<(item: Item, due: NIODeadline)>()
    private var queuedBytes = 0
    private var timer: Scheduled<Void>?
    private var isWriting = false
    private var isDraining = false
    private var isDiscarding = false

    /// How long each item is kept; for the items that come after it was set.
    var delay = TimeAmount.zero
    /// While it is set nothing leaves the queue.
    var isStalled = false {
        didSet { self.drain() }
    }
    /// Called with bytes that are about to be written.
    var willWrite: (ByteBuffer) -> Void = { _ in }
    /// Called with the number of bytes that are kept from now on, negative for those that are not any more.
    var didKeep: (Int) -> Void = { _ in }
    /// Called with the number of bytes that have been written.
    var didWrite: (Int) -> Void = { _ in }
    /// Called when the end of the source's bytes has been passed on.
    var didHalfClose: () -> Void = {}

    init(loop: any EventLoop) {
        self.loop = loop
    }

    /// Begins to read from one side and to write to the other.
    func start(from source: any Channel, to target: any Channel) {
        self.source = source
        self.target = target
        self.drain()
        self.readIfWanted()
    }

    func enqueue(_ item: Item) {
        if self.isDiscarding { return }
        // Should the delay have been shortened, it waits for the items ahead: only the head of the queue is looked at.
        self.queue.append((item, .now() + self.delay))
        if case .bytes(let bytes) = item {
            self.queuedBytes += bytes.readableBytes
            self.didKeep(bytes.readableBytes)
        }
        self.drain()
    }

    /// Drops what is queued and what will come: the target is gone. The source is still read, to notice its end.
    func discard() {
        self.isDiscarding = true
        self.queue.removeAll()
        if self.queuedBytes > 0 { self.didKeep(-self.queuedBytes) }
        self.queuedBytes = 0
        self.timer?.cancel()
        self.readIfWanted()
    }

    /// Ends all callbacks, so that nothing keeps the link alive.
    func finish() {
        self.timer?.cancel()
        self.willWrite = { _ in }
        self.didHalfClose = {}
    }

    /// Asks the source for more unless there is enough.
    func readIfWanted() {
        if self.queuedBytes < Self.limit { self.source?.read() }
    }

    private func drain() {
        // A write may be done at once and call back from inside the loop below; the loop then goes on by itself.
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
    /// Closes so that the other end gets a reset (TCP); on a Unix socket it is an ordinary close.
    func closeWithReset() {
        let promise = self.eventLoop.makePromise(of: Void.self)
        promise.futureResult.whenComplete { _ in self.close(promise: nil) }
        guard let socket = self as? any SocketOptionProvider else { return promise.succeed() }
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).cascade(to: promise)
    }
}
