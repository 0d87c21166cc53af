// The arguments and replies of the scripts `work` and `beat`: see Lua/work.lua.
import Hiredis

/// What a worker reports about a job that it has run.
struct JobEnd: Sendable {
    enum Outcome: UInt8 {
        case done, retry, `return`, giveUp, hadEffect
    }
    var tag: UInt64
    var fence: Int
    var outcome: Outcome
    var pause = Duration.zero
    var reason = ""

    /// The maximum number of bytes of a reason that are stored.
    private static let maxReasonBytes = 1024

    var argument: RedisArgument {
        var end = PackedBytes()
        end.uint64(tag)
        end.number(fence)
        end.byte(outcome.rawValue)
        end.number(pause.wholeMilliseconds)
        end.raw(reason.utf8.prefix(Self.maxReasonBytes))
        return .bytes(end.bytes)
    }
}

/// A request of `work`, without the ends.
struct WorkRequest: Sendable {
    var process: String
    /// Grows with each request of the worker.
    var number: Int
    /// The highest one that the worker has seen.
    var fence: Int
    /// The maximum number of jobs to take.
    var room: Int
    var maxFailed: Int

    /// The maximum number of bytes of the jobs that one request takes; always one job.
    private static let maxBytes = 1 << 20

    /// - Parameter ends: the number of ends, whose arguments follow.
    func argument(_ ends: Int) -> RedisArgument {
        var request = PackedBytes()
        request.raw(process.utf8)
        request.number(number)
        request.number(fence)
        request.number(room)
        request.number(Self.maxBytes)
        request.number(maxFailed)
        request.uint16(ends)
        return .bytes(request.bytes)
    }
}

extension Partition {
    /// The mailbox that `work` uses, the process to notify, and the limits.
    func listenArgument(_ listener: String, registration: Duration) -> [UInt8] {
        var listen = target
        listen.byte(PollPhase.continues.rawValue)
        listen.raw(listener.utf8)
        listen.number(0)
        listen.number(registration.wholeMilliseconds)
        listen.number(-1)
        for _ in 0..<2 { listen.uint64(0) }
        for _ in 0..<2 { listen.number(0) }
        listen.raw(limits[MailboxLimits.listenPart])
        return listen.bytes
    }
}

/// A job that a worker has taken.
struct TakenJob: Sendable {
    var tag: UInt64
    var fence: Int
    var attempt: Int
    var stored: StoredMessage

    /// The jobs in a reply, which has two elements for each.
    static func all(in elements: [RESPValue]) -> [TakenJob] {
        stride(from: 0, to: elements.count - 1, by: 2).compactMap { at in
            guard let taken = elements[at].bytes, let body = elements[at + 1].bytes else { return nil }
            return TakenJob(taken, body: body)
        }
    }

    /// - Returns: `nil` if the two elements are not in the format.
    init?(_ taken: [UInt8], body: [UInt8]) {
        var reader = ByteReader(taken)
        guard let attempt = reader.integer(size: 2), let fence = reader.number(),
            let stored = StoredMessage(head: Array(reader.rest), body: body)
        else { return nil }
        (self.attempt, self.fence, self.stored, tag) = (attempt, fence, stored, stored.tag)
    }
}

/// The reply of `work`.
struct WorkReply: Sendable {
    /// In milliseconds since 1970, by the server's clock.
    var now: Int
    /// When the next job that waits may be taken.
    var next: Int?
    /// Whether there are more messages.
    var hasMore: Bool
    /// For each end, whether the worker still had the job.
    var results: [Bool]
    var jobs: [TakenJob]

    init?(_ reply: RESPValue) {
        guard let parts = reply.array, parts.count >= 5, parts[0].string == "ok", let now = parts[1].integer,
            let hasMore = parts[3].integer, let results = parts[4].bytes
        else { return nil }
        (self.now, next, self.hasMore) = (now, parts[2].integer, hasMore == 1)
        self.results = results.map { $0 == UInt8(ascii: "1") }
        jobs = TakenJob.all(in: Array(parts.dropFirst(5)))
    }
}

/// The reply of `beat`.
struct BeatReply: Sendable {
    var now: Int
    var next: Int?
    /// The tags of jobs that the worker does not have any more.
    var lost: [UInt64]
    /// The tags of jobs that were cancelled.
    var cancelled: [UInt64]
    /// Whether more workers are dead.
    var hasMore: Bool

    init?(_ reply: RESPValue) {
        guard let parts = reply.array, parts.count == 6, parts[0].string == "ok", let now = parts[1].integer,
            let lost = parts[3].bytes, let cancelled = parts[4].bytes, let hasMore = parts[5].integer
        else { return nil }
        (self.now, next, self.hasMore) = (now, parts[2].integer, hasMore == 1)
        (self.lost, self.cancelled) = (Self.tags(lost), Self.tags(cancelled))
    }

    private static func tags(_ bytes: [UInt8]) -> [UInt64] {
        var reader = ByteReader(bytes)
        var tags: [UInt64] = []
        while let tag = reader.uint64() { tags.append(tag) }
        return tags
    }
}
