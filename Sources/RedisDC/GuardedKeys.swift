// Writes that compare a lease's fence where they happen, so that a holder that was paused too long writes in vain.
import CoordinationBase
package import Hiredis

extension Lease {
    /// Keys of the application that a later holder of this lock takes over: what a holder that was paused beyond its lease
    /// still sends is refused there.
    ///
    /// ```swift
    /// try await mutex.withLock { lease in
    ///     let report = lease.guarded(redis)
    ///     let draft = try await report.get("report")
    ///     try await report.set("report", to: .string(finished(draft)))
    /// }
    /// ```
    ///
    /// - Parameter redis: the server of the keys. It need not be that of the coordinator.
    public func guarded(_ redis: any Redis) -> GuardedKeys { GuardedKeys(lease: self, redis: redis) }
}

/// Keys that only the holder with the highest fence changes.
///
/// A lease cannot exclude a process that is paused between its last look at the lease and its write. Here Redis compares the
/// ``Lease/fence`` in the script that writes: a fence that is lower than one that has used the key is refused, and nothing
/// is changed.
///
/// - Every use of a key, also ``get(_:)``, takes it over for the fence of the lease. A new holder reads what it is going to
///   change, and from then on the holders before it write in vain.
/// - The fence is stored beside the key, in the same slot of a cluster, with the name of the lock:
///   `rdc:fence:{KEY}`, or `rdc:fence:{TAG}:KEY` for a key with a hash tag. It expires seven days after its last use.
/// - A key belongs to one lock: that of another name is refused.
/// - Only uses by these functions are compared. Others read the key as any key, and must not write it.
/// - When Redis loses the end of its data in a failover, it may lose a fence together with the write. The next use by the
///   holder brings it back.
public struct GuardedKeys: Sendable {
    let lease: Lease
    let redis: any Redis

    /// Sets a key to a value.
    ///
    /// - Parameters:
    ///   - timeToLive: 1 ms or more, after which the key expires; `nil` for never.
    /// - Throws:
    ///   - `.lost`: the lease is no longer held, or a later holder has used the key; nothing was changed.
    ///   - `.conflict`: the key belongs to another lock.
    ///   - `.invalidArgument`: nothing was sent.
    ///   - `.connectionLost`, `.cancelled`, `.timedOut`: if `mayHaveRun` is set, the write may have happened, or may still
    ///     happen unless a later holder uses the key before. Setting it again is safe while the lease is held.
    ///   - `.outOfMemory`, `.notPermitted`, `.serverError`, `.notConnected`, `.stopped`.
    public func set(
        _ key: String, to value: RedisArgument, timeToLive: Duration? = nil
    ) async throws(RedisDCError) {
        if let timeToLive, timeToLive < .milliseconds(1) {
            throw RedisDCError(
                .invalidArgument,
                "cannot set the guarded key \"\(key)\": timeToLive is \(timeToLive), expected 1 ms or more")
        }
        let ttl = timeToLive.map { RedisArgument.integer(Int(min($0, .maxWait) / .milliseconds(1))) } ?? ""
        _ = try await run(Scripts.guardedWrite, key, ["set", value, ttl])
    }

    /// Deletes a key. Its fence stays.
    ///
    /// - Throws: what ``set(_:to:timeToLive:)`` throws.
    public func delete(_ key: String) async throws(RedisDCError) {
        _ = try await run(Scripts.guardedWrite, key, ["delete", "", ""])
    }

    /// Reads a key, and takes it over: no holder before this one can change it afterwards.
    ///
    /// - Returns: the value; `.null` if the key does not exist.
    /// - Throws: what ``set(_:to:timeToLive:)`` throws; `.wrongType` if the value is no string.
    public func get(_ key: String) async throws(RedisDCError) -> RESPValue {
        let parts = try await run(Scripts.guardedRead, key, []).array ?? []
        return parts.count > 1 ? parts[1] : .null
    }

    /// Runs a script that changes guarded keys in its own way. It sees `KEYS` and `ARGV` as without a guard, and does not run
    /// if a later holder has used one of the keys.
    ///
    /// - Parameters:
    ///   - keys: 1 to 64 keys, of one slot in a cluster.
    /// - Returns: the reply of the script.
    /// - Throws: what ``set(_:to:timeToLive:)`` throws; `.serverError` if the script fails, after what it has written.
    public func run(
        _ script: GuardedScript, keys: [String], arguments: [RedisArgument] = []
    ) async throws(RedisDCError) -> RESPValue {
        guard (1...64).contains(keys.count) else {
            throw RedisDCError(
                .invalidArgument, "a guarded script has \(keys.count) keys, expected 1 to 64")
        }
        var guards: [String] = []
        for key in keys { guards.append(try Self.guardKey(key)) }
        let reply = try await send(script.guarded, keys + guards, arguments + [fence, .string(lease.name)], keys)
        guard let parts = reply.array, parts.count > 1 else { return .null }
        return parts[1]
    }

    // MARK: Requests

    private var fence: RedisArgument { .string(String(lease.fence)) }

    private func run(
        _ script: RedisScript, _ key: String, _ arguments: [RedisArgument]
    ) async throws(RedisDCError) -> RESPValue {
        let keys = [key, try Self.guardKey(key)]
        return try await send(script, keys, [fence, .string(lease.name)] + arguments, [key])
    }

    private func send(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], _ names: [String]
    ) async throws(RedisDCError) -> RESPValue {
        try lease.check()
        let reply: RESPValue
        do { reply = try await redis.script(script, keys: keys, arguments: arguments, timeout: nil) } catch {
            throw RedisDCError(error, key: names.joined(separator: ", "))
        }
        let text = names.map { "\"\($0)\"" }.joined(separator: ", ")
        switch reply.array?.first?.string {
        case "ok": return reply
        case "late":
            throw RedisDCError(
                .lost,
                "\"\(lease.name)\" has a later holder, which has used \(text): nothing was changed with the fence \(lease.fence)"
            )
        case "other":
            throw RedisDCError(
                .conflict,
                "\(text) belongs to another lock than \"\(lease.name)\": use one lock for all changes of a key")
        default: throw RedisDCError(.serverError, "unexpected reply: \(reply.form)")
        }
    }

    /// The key of the fence, in the same slot of a cluster as the key itself.
    static func guardKey(_ key: String) throws(RedisDCError) -> String {
        if let open = key.firstIndex(of: "{"), let close = key[open...].firstIndex(of: "}"),
            key.index(after: open) != close
        {
            return "rdc:fence:\(key[open...close]):\(key)"
        }
        guard !key.isEmpty, !key.contains("}") else {
            throw RedisDCError(
                .invalidArgument,
                "cannot guard the key \"\(key)\": expected a key without \"}\", or with a hash tag, and not an empty one"
            )
        }
        return "rdc:fence:{\(key)}"
    }
}

/// A script of the application that changes guarded keys. Make it once and keep it.
///
/// ```swift
/// static let append = GuardedScript("return redis.call('APPEND', KEYS[1], ARGV[1])")
/// ```
public final class GuardedScript: Sendable {
    let guarded: RedisScript

    /// Makes a script from its Lua source, which may use `KEYS` and `ARGV` and return a reply.
    public init(_ source: String) {
        guarded = RedisScript(
            """
            local total, fence, name = #KEYS / 2, ARGV[#ARGV - 1], ARGV[#ARGV]
            for number = 1, total do
              local kept = redis.call('GET', KEYS[total + number])
              if kept then
                local space = string.find(kept, ' ', 1, true)
                if not space or string.sub(kept, space + 1) ~= name then return {'other', kept} end
                if tonumber(string.sub(kept, 1, space - 1)) > tonumber(fence) then return {'late', kept} end
              end
            end
            for number = 1, total do
              redis.call('SET', KEYS[total + number], fence .. ' ' .. name, 'PX', '604800000')
            end
            for number = total * 2, total + 1, -1 do KEYS[number] = nil end
            ARGV[#ARGV] = nil
            ARGV[#ARGV] = nil
            local function body()
            \(source)
            end
            return {'ok', body()}
            """)
    }
}

extension Scripts {
    static let guardedWrite = RedisScript(embedded: PackageResources.guarded_write_lua)
    static let guardedRead = RedisScript(embedded: PackageResources.guarded_read_lua)
}
