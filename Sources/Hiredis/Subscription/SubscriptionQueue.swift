import DequeModule
import NIOConcurrencyHelpers

/// The bounded buffer between the event loop and one subscriber.
final class SubscriptionQueue: Sendable, Identifiable {
    private struct State {
        var events = Deque<SubscriptionEvent>()
        var messages = 0
        var bytes = 0
        /// The number of messages dropped at the front (`dropOldest`) or at the end (`suspend`)
        /// that no gap has announced yet.
        var missed = 0
        var isSuspended = false
        var end: Result<Void, RedisError>?
        var reader: Reader?
        var sink: (@Sendable (SubscriptionEvent) -> Void)?
    }

    /// A receiver that gets an event immediately. Without one the event is buffered.
    private enum Receiver {
        case reader(Reader)
        case sink(@Sendable (SubscriptionEvent) -> Void)

        func receive(_ event: SubscriptionEvent) {
            switch self {
            case .reader(let reader): reader.continuation.resume(returning: .success(event))
            case .sink(let sink): sink(event)
            }
        }
    }

    private struct Reader {
        /// Distinguishes it from the next reader: a cancellation may arrive after it was resumed.
        var id: UInt64
        var continuation: CheckedContinuation<Result<SubscriptionEvent?, RedisError>, Never>
    }

    let id = RedisConnection.makeID()
    private let buffer: SubscriptionBuffer
    private let state = NIOLockedValueBox(State())

    init(_ buffer: SubscriptionBuffer) { self.buffer = buffer }

    // MARK: From the event loop

    /// Delivers a message, or buffers it according to the policy.
    func push(_ message: RedisMessage) {
        let receiver: Receiver? = state.withLockedValue { state in
            guard state.end == nil else { return nil }
            if let receiver = Self.receiver(&state) { return receiver }
            append(message, to: &state)
            return nil
        }
        receiver?.receive(.message(message))
    }

    /// Delivers or buffers a gap.
    func push(gap: SubscriptionGap) {
        let receiver: Receiver? = state.withLockedValue { state in
            guard state.end == nil else { return nil }
            if let receiver = Self.receiver(&state) { return receiver }
            // Gaps take no space in the buffer. Several equal gaps in a row mean the same as one.
            if state.events.last != .gap(gap) { state.events.append(.gap(gap)) }
            return nil
        }
        receiver?.receive(.gap(gap))
    }

    private static func receiver(_ state: inout State) -> Receiver? {
        if let sink = state.sink { return .sink(sink) }
        defer { state.reader = nil }
        return state.reader.map { .reader($0) }
    }

    /// Ends the sequence after the buffered events, with an error if there is one.
    func end(_ error: RedisError?) {
        let reader = state.withLockedValue { state in
            state.end = state.end ?? error.map { .failure($0) } ?? .success(())
            defer { state.reader = nil }
            return state.reader
        }
        reader?.continuation.resume(returning: error.map { .failure($0) } ?? .success(nil))
    }

    private func append(_ message: RedisMessage, to state: inout State) {
        let isFull =
            state.messages >= buffer.messages
            || (state.messages > 0 && state.bytes + message.payload.count > buffer.bytes)
        if isFull || state.isSuspended {
            switch buffer.policy {
            case .suspend:
                state.isSuspended = true
                state.missed += 1
                return
            case .fail:
                state.end = .failure(
                    RedisError(
                        .subscriberTooSlow,
                        "the subscriber did not read: more than \(buffer.messages) messages or \(buffer.bytes) bytes were buffered"
                    ))
                return
            case .dropOldest:
                dropOldest(&state, toFit: message.payload.count)
            }
        }
        state.events.append(.message(message))
        state.messages += 1
        state.bytes += message.payload.count
    }

    private func dropOldest(_ state: inout State, toFit size: Int) {
        while state.messages > 0, state.messages >= buffer.messages || state.bytes + size > buffer.bytes {
            // The gap that replaces the dropped messages covers a gap among them.
            guard case .message(let dropped) = state.events.removeFirst() else { continue }
            state.messages -= 1
            state.bytes -= dropped.payload.count
            state.missed += 1
        }
    }

    // MARK: From the reader

    /// Passes the buffered and all further events to `sink` on the event loop, where this must be
    /// called. `next` then returns only the end.
    func drain(into sink: @escaping @Sendable (SubscriptionEvent) -> Void) {
        let buffered = state.withLockedValue { state in
            state.sink = sink
            var buffered: [SubscriptionEvent] = []
            while let event = pop(&state) { buffered.append(event) }
            return buffered
        }
        for event in buffered { sink(event) }
    }

    /// Waits for the next event; `nil` at the end.
    ///
    /// - Throws: `.cancelled`, `.invalidArgument` while another task reads, or why the subscription
    ///   has ended.
    func next() async throws(RedisError) -> SubscriptionEvent? {
        let id = RedisConnection.makeID()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation {
                (continuation: CheckedContinuation<Result<SubscriptionEvent?, RedisError>, Never>) in
                let now: Result<SubscriptionEvent?, RedisError>? = state.withLockedValue { state in
                    if Task.isCancelled { return .failure(RedisError(.cancelled, "the task was cancelled")) }
                    if let event = pop(&state) { return .success(event) }
                    if let end = state.end { return end.map { nil } }
                    if state.reader != nil {
                        return .failure(
                            RedisError(
                                .invalidArgument, "another task is reading this subscription; only one can at a time"))
                    }
                    state.reader = Reader(id: id, continuation: continuation)
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let reader: Reader? = state.withLockedValue { state in
                guard state.reader?.id == id else { return nil }
                defer { state.reader = nil }
                return state.reader
            }
            reader?.continuation.resume(returning: .failure(RedisError(.cancelled, "the task was cancelled")))
        }
        return try result.get()
    }

    private func pop(_ state: inout State) -> SubscriptionEvent? {
        if state.missed > 0, buffer.policy == .dropOldest || state.events.isEmpty {
            defer { state.missed = 0 }
            state.isSuspended = false
            return .gap(.overflow(missed: state.missed))
        }
        guard let event = state.events.popFirst() else { return nil }
        if case .message(let message) = event {
            state.messages -= 1
            state.bytes -= message.payload.count
        }
        return event
    }
}
