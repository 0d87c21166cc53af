import NIOCore
import NIOConcurrencyHelpers

/// The queue in which tasks on any thread put commands for the connection's event loop.
///
/// A command is encoded on the caller's thread directly into the outgoing buffer. The first command
/// of a batch wakes the event loop, which takes all commands that have accumulated and writes them
/// with one flush. This is the automatic pipelining.
final class Outbox: Sendable {
    struct Batch {
        var bytes: ByteBuffer
        var submissions: [Submission]
    }

    private struct State {
        var bytes = ByteBuffer()
        /// The size of recent batches. Memory for the next one is allocated outside the lock.
        var usualSize = 0
        var submissions: [Submission] = []
        var spare: [Submission] = []
        var isScheduled = false
        var closed: RedisError?
    }

    enum Submitted {
        /// The first of a batch: the event loop must be woken.
        case first
        case added
        case closed(RedisError)
    }

    private let state = NIOLockedValueBox(State())

    /// Adds a command.
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

    /// Removes and returns all commands that have accumulated. Return the batch's storage with
    /// `recycle`.
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

    /// Keeps the storage of a batch for the next one.
    func recycle(_ submissions: [Submission]) {
        var submissions = submissions
        submissions.removeAll(keepingCapacity: submissions.capacity <= 1024)
        state.withLockedValue { [submissions] in if $0.spare.capacity < submissions.capacity { $0.spare = submissions }
        }
    }

    /// Refuses further submissions, and returns those that never reached the event loop.
    func close(_ error: RedisError) -> [Submission] {
        state.withLockedValue { state in
            if state.closed == nil { state.closed = error }
            defer { state.submissions = [] }
            state.bytes = ByteBuffer()
            return state.submissions
        }
    }
}
