import NIOConcurrencyHelpers
import NIOCore

/// The turns in which one event loop reads from connections of one kind: a number of reads per tick, in the order in which
/// the connections ask for them.
///
/// Each connection waits for one read at most. A connection that has ended takes no turn.
final class ReadTurns {
    private let eventLoop: any EventLoop
    private let perTick: Int
    private let tick: TimeAmount
    /// The number of reads that are left in this tick.
    private var left: Int
    private var isTicking = false
    private var waiting = CircularBuffer<TurnReader>()

    /// - Parameters:
    ///   - eventLoop: runs all calls.
    ///   - perTick: the number of reads in a tick.
    ///   - tick: the duration of a tick.
    init(_ eventLoop: any EventLoop, perTick: Int, tick: TimeAmount) {
        (self.eventLoop, self.perTick, self.tick) = (eventLoop, perTick, tick)
        left = perTick
    }

    /// Takes a turn.
    ///
    /// - Returns: whether the reader may read now. It is called when its turn comes if not.
    func take(_ reader: TurnReader) -> Bool {
        if !isTicking { startTick() }
        guard left > 0 else {
            waiting.append(reader)
            return false
        }
        left -= 1
        return true
    }

    // One timer for all readers: a timer costs NIO as much as a read.
    private func startTick() {
        isTicking = true
        left = perTick
        eventLoop.assumeIsolated().scheduleTask(in: tick) { self.endTick() }
    }

    private func endTick() {
        isTicking = false
        guard !waiting.isEmpty else {
            left = perTick
            return
        }
        startTick()
        while left > 0, let reader = waiting.popFirst() {
            if reader.readInTurn() { left -= 1 }
        }
    }
}

/// The turns of the event loops of a server. New connections do not wait for bodies that arrive.
final class ServerTurns: Sendable {
    struct LoopTurns {
        /// For what a new connection sends first.
        let connections: ReadTurns
        /// For long bodies, and for what is discarded.
        let bodies: ReadTurns
    }

    private let turns = NIOLockedValueBox<[ObjectIdentifier: NIOLoopBound<LoopTurns>]>([:])

    /// Returns the turns of an event loop, on which this must be called.
    func turns(of eventLoop: any EventLoop) -> LoopTurns {
        turns.withLockedValue { turns in
            if let turns = turns[ObjectIdentifier(eventLoop)] { return turns.value }
            func made(_ perTick: Int) -> ReadTurns { ReadTurns(eventLoop, perTick: perTick, tick: .milliseconds(1)) }
            let new = LoopTurns(
                connections: made(GatewayConfiguration.connectionsPerMillisecond),
                bodies: made(GatewayConfiguration.bodyReadsPerMillisecond))
            turns[ObjectIdentifier(eventLoop)] = NIOLoopBound(new, eventLoop: eventLoop)
            return new
        }
    }
}
