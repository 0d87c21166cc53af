// Finishing a job together with its effect, in one script of the server.
import CoordinationBase
public import Hiredis

/// A script of the application that has the effect of a job and finishes it. Make it once and keep it.
///
/// ```swift
/// let book = JobScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
/// ```
public final class JobScript: Sendable {
    let script: RedisScript

    /// Makes a script from its Lua source, which sees its `KEYS` and `ARGV`, and may return a reply.
    public init(_ source: String) {
        script = RedisScript(
            """
            local effect = function()
            \(source)
            end
            local finish = function()
            \(Self.finishSource)
            end
            local record = finish()
            if type(record) == 'table' then return record end
            local work, field = KEYS[#KEYS], 'j:' .. ARGV[#ARGV - 1]
            KEYS[#KEYS] = nil
            for number = 1, 3 do ARGV[#ARGV] = nil end
            local has_run, reply = pcall(effect)
            if type(reply) == 'table' and reply.err then has_run, reply = false, reply.err end
            if not has_run then return {'failed', tostring(reply)} end
            redis.call('HSET', work, field, record)
            return {'ok', reply}
            """)
    }

    private static let finishSource = String(decoding: PackageResources.finish_job_lua, as: UTF8.self)
}

extension Job {
    /// Has the effect of the job and finishes it, in one script: exactly once, however often the job runs, and whoever
    /// dies.
    ///
    /// ```swift
    /// let book = JobScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    /// try await office.mailbox("payments").work { job in
    ///     try await job.finish(with: book, keys: ["balance"], arguments: [.string(job.message.text)])
    /// }
    /// ```
    ///
    /// Afterwards the job is done, also if the handler throws, or its worker dies. When Redis loses the end of its data
    /// in a failover, it loses both or neither: then the job runs again, and has its effect again. Only a mailbox that
    /// forgets its workers (``MailboxLimits/deviceTTL``, ``Mailbox/forget(device:)``) while it keeps messages for
    /// other devices has them run again.
    ///
    /// - Parameters:
    ///   - script: the effect. If it fails or returns an error (`redis.error_reply`), the job is not finished; what it has
    ///     written before stays.
    ///   - keys: up to 64 keys of the server of the post office. In a cluster they are in the slot of the mailbox: those
    ///     with the hash tag ``Mailbox/hashTag``.
    ///   - arguments: those of the script.
    /// - Returns: the reply of the script; `nil` if a call has finished the job before, whose reply may have been lost.
    /// - Throws: `.superseded`: this worker has lost the job, or it was cancelled. `.invalidArgument`; `.serverError` with
    ///   the error of the script if that fails; and the codes of a failed request. If `mayHaveRun` is set, an earlier
    ///   attempt of this call may have had the effect; otherwise the call has not finished the job. Calling this again
    ///   is safe.
    @discardableResult
    public func finish(
        with script: JobScript, keys: [String], arguments: [RedisArgument] = []
    ) async throws(QueueListenError) -> RESPValue? {
        guard keys.count <= 64 else {
            throw QueueListenError(.invalidArgument, "the script of a job has \(keys.count) keys, expected at most 64")
        }
        let office = mailbox.office
        let timeout = office.configuration.callTimeout
        var packed = PackedBytes()
        packed.uint64(tag)
        let all = arguments + [.string(process), .bytes(packed.bytes), .integer(Int(fence))]
        var mayHaveRun = false
        let reply = try await repeating(
            until: office.clock.now() + timeout, office.clock, throwing: QueueListenError.self
        ) {
            do {
                return try await office.redis.script(
                    script.script, keys: keys + [mailbox.partition.keys.work(mailbox.name)], arguments: all,
                    timeout: timeout / 2)
            } catch {
                mayHaveRun = mayHaveRun || QueueListenError(error).mayHaveRun
                throw error
            }
        }
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "ok":
            worker.confirmEffect(of: tag, fence: fence)
            // An array of Redis ends at the first element that is nil.
            return parts.count > 1 ? parts[1] : .null
        case "done":
            worker.confirmEffect(of: tag, fence: fence)
            return nil
        case "failed":
            throw QueueListenError(
                .serverError, "the script of the job has failed: \(parts.last?.string ?? "")", mayHaveRun: mayHaveRun)
        case "lost":
            throw QueueListenError(
                .superseded,
                "another worker may run the job, or it was cancelled: "
                    + (mayHaveRun ? "an earlier attempt may have had the effect" : "nothing was changed"),
                mayHaveRun: mayHaveRun)
        default: throw QueueListenError(refusal: reply, partitions: mailbox.partition.total)
        }
    }
}

extension Mailbox {
    /// The hash tag of the mailbox's keys, `{NAMESPACE:PARTITION}`: a cluster keeps keys with it in the same slot.
    public var hashTag: String {
        let key = partition.keys.meta
        return String(key[key.firstIndex(of: "{")!...key.firstIndex(of: "}")!])
    }
}
