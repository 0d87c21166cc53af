// Passes a coordinator's events on to every stream of `Coordinator.events()`.
import Hiredis

/// Distributes events to any number of streams, each of which keeps the newest 64 unread ones.
final class EventHub: Sendable {
    private struct State {
        var readers: [(partition: Int?, continuation: AsyncStream<CoordinatorEvent>.Continuation)] = []
        var hasFinished = false
    }
    private let state = Locked(State())

    /// Returns the events from now on: of one partition, or of all.
    func stream(partition: Int? = nil) -> AsyncStream<CoordinatorEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CoordinatorEvent.self, bufferingPolicy: .bufferingNewest(64))
        let hasFinished = state.withLock { state in
            state.readers.append((partition, continuation))
            return state.hasFinished
        }
        if hasFinished { continuation.finish() }
        return stream
    }

    func notify(_ event: CoordinatorEvent, partition: Int) {
        state.withLock { state in
            state.readers.removeAll { reader in
                guard reader.partition == nil || reader.partition == partition else { return false }
                if case .terminated = reader.continuation.yield(event) { return true }
                return false
            }
        }
    }

    func finish() {
        let readers = state.withLock { state in
            state.hasFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.finish() }
    }
}
