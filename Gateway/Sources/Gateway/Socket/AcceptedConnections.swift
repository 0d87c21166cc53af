import HummingbirdCore
import Logging
import NIOCore

/// Closes the connections that a server drops.
///
/// A server of Hummingbird drops a connection whose setup ends after the server has closed its own socket, because it stops.
/// One that is cancelled drops those that wait for it. Their clients would wait for an answer for ever. And a
/// `NIOAsyncChannel` that is released while its channel is open may end the process.
struct AcceptedConnections<Base: ServerChildChannel>: ServerChildChannel {
    /// A connection, which is open at most as long as this exists.
    final class Value: ServerChildChannelValue {
        let base: Base.Value
        var channel: any Channel { base.channel }

        init(_ base: Base.Value) { self.base = base }

        deinit {
            // The value may contain the NIOAsyncChannel, which must not be released before.
            base.channel.closeFuture.whenComplete { [base] _ in withExtendedLifetime(base) {} }
            base.channel.close(promise: nil)
        }
    }

    let base: Base

    init(_ base: Base) { self.base = base }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        base.setup(channel: channel, logger: logger).map { Value($0) }
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value.base, logger: logger)
        withExtendedLifetime(value) {}
    }
}
