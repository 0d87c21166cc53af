// The bounded buffer between the event loop and one subscriber.
import DequeModule
import NIOConcurrencyHelpers

final class SubscriptionQueue: Sendable, Identifiable {
    private struct State {
        var events = Deque<SubscriptionEvent>()
        var messages = 0
        var bytes = 0
        /// Dropped at the front (`dropOldest`) or after the end (`suspend`), not yet told.
        var missed = 0
        var isSuspended = false
        var end: Result<Void, RedisError>?
        var reader: Reader?
        var sink: (@Sendable (SubscriptionEvent) -> Void)?
    }

    /// To whom an event goes at once; if to nobody, it is kept.
    private enum Taker {
        case reader(Reader)
        case sink(@Sendable (SubscriptionEvent) -> Void)

        func take(_ event: SubscriptionEvent) {
            switch self {
            case .reader(let reader): reader.continuation.resume(returning: .success(event))
            case .sink(let sink): sink(event)
            }
        }
    }

    private struct Reader {
        /// Tells it from the next one: a cancel may come when it has been resumed already.
        var id: UInt64
        var continuation: CheckedContinuation<Result<SubscriptionEvent?, RedisError>, Never>
    }

    let id = RedisConnection.makeID()
    private let buffer: SubscriptionBuffer
    private let state = NIOLockedValueBox(State())

    init(_ buffer: SubscriptionBuffer) { self.buffer = buffer }

    // MARK: From the event loop

    func push(_ message: RedisMessage) {
        let taker: Taker? = state.withLockedValue { state in
            guard state.end == nil else { return nil }
            if let taker = Self.taker(&state) { return taker }
            append(message, to: &state)
            return nil
        }
        taker?.take(.message(message))
    }

    func push(gap: SubscriptionGap) {
        let taker: Taker? = state.withLockedValue { state in
            guard state.end == nil else { return nil }
            if let taker = Self.taker(&state) { return taker }
            // Gaps take no room; equal ones in a row say no more than one.
            if state.events.last != .gap(gap) { state.events.append(.gap(gap)) }
            return nil
        }
        taker?.take(.gap(gap))
    }

    private static func taker(_ state: inout State) -> Taker? {
        if let sink = state.sink { return .sink(sink) }
        defer { state.reader = nil }
        return state.reader.map { .reader($0) }
    }

    /// The sequence ends after what has gathered, with an error if there is one.
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
                        "more than \(buffer.messages) messages or \(buffer.bytes) bytes were waiting"))
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
            // A gap among the oldest is covered by the one that is told in their place.
            guard case .message(let dropped) = state.events.removeFirst() else { continue }
            state.messages -= 1
            state.bytes -= dropped.payload.count
            state.missed += 1
        }
    }

    // MARK: From the reader

    /// From now on events go to `sink` on the event loop, which is where this must be called; what has gathered goes first.
    /// Then `next` returns only the end.
    func drain(into sink: @escaping @Sendable (SubscriptionEvent) -> Void) {
        let gathered = state.withLockedValue { state in
            state.sink = sink
            var gathered: [SubscriptionEvent] = []
            while let event = pop(&state) { gathered.append(event) }
            return gathered
        }
        for event in gathered { sink(event) }
    }

    /// - Throws: `.cancelled`; or why the subscription has ended.
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
                        return .failure(RedisError(.invalidArgument, "a subscription is read by one task at a time"))
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
