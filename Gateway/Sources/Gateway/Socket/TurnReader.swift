import NIOCore

/// Reads from a connection in the turns of its event loop while its client is not verified and can make the node work: what a
/// new connection sends first, and a body of more than `GatewayConfiguration.maxReadBytes`.
///
/// Without turns, an event loop with a thousand such connections reads from all of them before it returns to a short request,
/// and again before each reply of Redis to it. Requests with short bodies on a connection that is open wait for no turn.
final class TurnReader: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = NIOAny

    enum Stage {
        /// Nothing has arrived.
        case new
        /// Headers, short bodies or frames arrive.
        case free
        /// A long body arrives.
        case longBody
        /// The connection ends, and what arrives is discarded.
        case ending
    }

    private(set) var stage = Stage.new
    private let turns: ServerTurns.LoopTurns
    private var context: ChannelHandlerContext?
    private var isWaiting = false

    init(_ turns: ServerTurns.LoopTurns) { self.turns = turns }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch stage {
        case .new: stage = .free
        case .free, .longBody: break
        case .ending: return
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        guard !isWaiting else { return }
        let mayRead =
            switch stage {
            case .new: turns.connections.take(self)
            case .free: true
            case .longBody, .ending: turns.bodies.take(self)
            }
        if mayRead { context.read() } else { isWaiting = true }
    }

    /// Reads because the turn has come.
    ///
    /// - Returns: `false` if the connection has ended.
    func readInTurn() -> Bool {
        isWaiting = false
        guard let context, context.channel.isActive else { return false }
        context.read()
        return true
    }

    /// A body has more than `GatewayConfiguration.maxReadBytes`.
    func beginLongBody() { stage = .longBody }

    /// The body has arrived.
    func endBody() { stage = .free }

    /// The last response of the connection has ended: its client can still read it while the rest of its body is discarded.
    func discard() { stage = .ending }
}
