import NIOConcurrencyHelpers
import NIOCore

/// The queue in which tasks on any thread put commands for the connection's event loop.
///
/// A command is encoded on the caller's thread before the lock is taken, so that the event loop
/// does not wait for it: a small one on the stack, from where it is copied into the outgoing buffer,
/// a large one into a buffer of its own. The first command of a batch wakes the event loop, which
/// takes all commands that have accumulated and writes them with one flush. This is the automatic
/// pipelining.
final class Outbox: Sendable {
    struct Batch {
        /// The bytes of the commands, in their order.
        var pieces: [ByteBuffer]
        var submissions: [Submission]
    }

    /// The size from which a command has a buffer of its own.
    static let largeSize = 16 * 1024

    private struct State {
        /// Large commands, and what was before each of them.
        var pieces: [ByteBuffer] = []
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

    let room: SendRoom
    private let state = NIOLockedValueBox(State())

    init(maxUnsentBytes: Int = .max) { room = SendRoom(limit: maxUnsentBytes) }

    /// Adds a command, or a pipeline of commands.
    func submit(_ submission: Submission, _ commands: some Collection<RedisCommand>) -> Submitted {
        let size = submission.encodedSize
        guard size < Self.largeSize else {
            var bytes = ByteBuffer()
            bytes.write(commands, size: size)
            return add(submission) { [bytes] state in
                if state.bytes.readableBytes > 0 { state.pieces.append(state.bytes) }
                state.bytes = ByteBuffer()
                state.pieces.append(bytes)
            }
        }
        return withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { scratch in
            let count = commands.encode(into: scratch)
            return add(submission) { $0.bytes.writeBytes(UnsafeRawBufferPointer(rebasing: scratch[..<count])) }
        }
    }

    private func add(_ submission: Submission, _ append: (inout State) -> Void) -> Submitted {
        state.withLockedValue { state in
            if let error = state.closed { return .closed(error) }
            append(&state)
            state.submissions.append(submission)
            if state.isScheduled { return .added }
            state.isScheduled = true
            return .first
        }
    }

    var isEmpty: Bool { state.withLockedValue { $0.submissions.isEmpty } }

    /// Removes and returns all commands that have accumulated. Return the batch's storage with
    /// `recycle`.
    func take(_ allocator: ByteBufferAllocator) -> Batch {
        let fresh = allocator.buffer(capacity: state.withLockedValue { $0.usualSize })
        return state.withLockedValue { state in
            state.isScheduled = false
            state.usualSize = min(64 * 1024, max(state.bytes.readableBytes, state.usualSize / 2))
            var batch = Batch(pieces: state.pieces, submissions: state.submissions)
            if state.bytes.readableBytes > 0 { batch.pieces.append(state.bytes) }
            (state.pieces, state.bytes) = ([], fresh)
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
        room.close(error)
        return state.withLockedValue { state in
            if state.closed == nil { state.closed = error }
            defer { state.submissions = [] }
            (state.pieces, state.bytes) = ([], ByteBuffer())
            return state.submissions
        }
    }
}
