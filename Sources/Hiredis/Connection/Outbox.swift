// Where tasks on any thread leave their commands for the connection's event loop.
//
// A command is encoded on the caller's thread straight into the outgoing buffer; the first one of a batch wakes the loop,
// which then takes all that has gathered and writes it with one flush. That is the automatic pipelining.
import NIOCore
import NIOConcurrencyHelpers

/// The caller's side of a command.
struct Caller: Sendable {
    enum Answer: Sendable {
        case resume(UnsafeContinuation<Result<RESPValue, RedisError>, Never>)
        /// Called on the event loop, without suspending anyone.
        case call(@Sendable (Result<RESPValue, RedisError>) -> Void)
    }

    var answer: Answer
    /// Settles a reply that came after the caller had given up.
    var settle: (@Sendable (RESPValue) -> Void)?

    func answer(_ result: Result<RESPValue, RedisError>) {
        switch answer {
        case .resume(let continuation): continuation.resume(returning: result)
        case .call(let completion): completion(result)
        }
    }
}

struct Submission: Sendable {
    var id: UInt64
    var caller: Caller
    var expectedReplies: Int
    var timeout: TimeAmount?
}

final class Outbox: Sendable {
    struct Batch {
        var bytes: ByteBuffer
        var submissions: [Submission]
    }

    private struct State {
        var bytes = ByteBuffer()
        /// Size of the last batch: room for the next one is made outside the lock.
        var usualSize = 0
        var submissions: [Submission] = []
        var spare: [Submission] = []
        var isScheduled = false
        var closed: RedisError?
    }

    enum Submitted {
        /// The loop must be woken.
        case first
        case added
        case closed(RedisError)
    }

    private let state = NIOLockedValueBox(State())

    func submit(_ submission: Submission, encode: (inout ByteBuffer) -> Void) -> Submitted {
        state.withLockedValue { state in
            if let error = state.closed { return .closed(error) }
            encode(&state.bytes)
            state.submissions.append(submission)
            if state.isScheduled { return .added }
            state.isScheduled = true
            return .first
        }
    }

    /// All that has gathered since the last call. Give the batch's storage back with `recycle`.
    func take(_ allocator: ByteBufferAllocator) -> Batch {
        let fresh = allocator.buffer(capacity: state.withLockedValue { $0.usualSize })
        return state.withLockedValue { state in
            state.isScheduled = false
            let batch = Batch(bytes: state.bytes, submissions: state.submissions)
            state.usualSize = min(64 * 1024, max(batch.bytes.readableBytes, state.usualSize / 2))
            state.bytes = fresh
            state.submissions = state.spare
            state.spare = []
            return batch
        }
    }

    /// Saves the next batch from growing an array anew.
    func recycle(_ submissions: [Submission]) {
        var submissions = submissions
        submissions.removeAll(keepingCapacity: submissions.capacity <= 1024)
        state.withLockedValue { [submissions] in if $0.spare.capacity < submissions.capacity { $0.spare = submissions }
        }
    }

    /// From now on submissions are refused; returns those that never reached the loop.
    func close(_ error: RedisError) -> [Submission] {
        state.withLockedValue { state in
            if state.closed == nil { state.closed = error }
            defer { state.submissions = [] }
            state.bytes = ByteBuffer()
            return state.submissions
        }
    }
}
