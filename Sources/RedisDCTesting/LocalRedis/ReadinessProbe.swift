import Foundation
import NIOCore
import NIOPosix

/// A check, through the Unix socket, whether a server is running.
struct ReadinessProbe {
    enum Answer {
        /// No process listens on the socket, or it did not reply.
        case silent
        /// The server is running and loads its data from disk.
        case loading
        /// The server is running. An error reply such as `-NOAUTH` shows this as `+PONG` does.
        case ready
    }

    let socketPath: String
    /// The password of the default user. Without it, a server that requires one replies `-NOAUTH`
    /// even while it is loading.
    let password: String?

    /// Sends one request and waits for the reply.
    func ask(within timeout: Duration) async -> Answer {
        // Looking for the socket file first is cheaper than creating a channel.
        guard FileManager.default.fileExists(atPath: self.socketPath) else { return .silent }
        let timeLimit = TimeAmount(max(timeout, .milliseconds(1)))
        let request = self.request
        let linesWanted = self.password == nil ? 1 : 2
        do {
            let group = MultiThreadedEventLoopGroup.singleton
            let answer = group.next().makePromise(of: Answer.self)
            let connection = ClientBootstrap(group: answer.futureResult.eventLoop)
                .connectTimeout(timeLimit)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            Handler(request: request, linesWanted: linesWanted, answer: answer))
                    }
                }
                .connect(unixDomainSocketPath: self.socketPath)
            connection.whenFailure { answer.fail($0) }
            let timer = answer.futureResult.eventLoop.scheduleTask(in: timeLimit) { answer.succeed(.silent) }
            defer { timer.cancel() }
            let result = try await answer.futureResult.get()
            try? await connection.get().close()
            return result
        } catch {
            return .silent
        }
    }

    private var request: ByteBuffer {
        var buffer = ByteBuffer()
        if let password {
            buffer.writeString("*2\r\n$4\r\nAUTH\r\n$\(password.utf8.count)\r\n\(password)\r\n")
        }
        buffer.writeString("PING\r\n")
        return buffer
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let request: ByteBuffer
        private let linesWanted: Int
        private let answer: EventLoopPromise<Answer>
        private var received = ""

        init(request: ByteBuffer, linesWanted: Int, answer: EventLoopPromise<Answer>) {
            self.request = request
            self.linesWanted = linesWanted
            self.answer = answer
        }

        func channelActive(context: ChannelHandlerContext) {
            context.writeAndFlush(Self.wrapOutboundOut(self.request), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.received += String(buffer: Self.unwrapInboundIn(data))
            let lines = self.received.split(separator: "\r\n", omittingEmptySubsequences: false).dropLast()
            guard lines.count >= self.linesWanted, let last = lines.last else { return }
            self.answer.succeed(last.hasPrefix("-LOADING") ? .loading : .ready)
        }

        func channelInactive(context: ChannelHandlerContext) {
            self.answer.succeed(.silent)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            self.answer.succeed(.silent)
        }
    }
}
