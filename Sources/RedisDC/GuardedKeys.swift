// Writes that compare a lease's fence where they happen, so that a holder that was paused too long writes in vain.
import CoordinationBase
public import Hiredis

extension Lease {
    /// Keys of the application that a later holder of this lock takes over: what a holder that was paused beyond its lease
    /// still sends is refused there.
    ///
    /// ```swift
    /// try await mutex.withLock { lease in
    ///     let report = lease.guarded(redis)
    ///     let draft = try await report.get("report").string ?? ""
    ///     try await report.set("report", to: .string(draft + " (checked)"))
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
/// - The fence is stored beside the key, in the same slot of a cluster, with the namespace and name of the lock:
///   `rdc:fence:{KEY}`, or `rdc:fence:{TAG}:KEY` for a key with a hash tag. It expires seven days after its last use, so a
///   holder that was paused for longer than that is not refused.
/// - A key belongs to one lock, until its fence expires. Other locks are refused.
/// - Only uses by these functions are compared. Other programs read the key as any key, and must not write it.
/// - The lease is that of a mutex, of a write lock or of an election. Leases that are held together, of a semaphore or of
///   readers, would refuse each other.
/// - When Redis loses the end of its data in a failover, it may lose a fence together with the write. The next use by the
///   holder brings it back.
public struct GuardedKeys: Sendable {
    let lease: Lease
    let redis: any Redis

    /// Sets a key to a value.
    ///
    /// - Parameters:
    ///   - ttl: 1 ms or more, after which the key expires; `nil` for never.
    /// - Throws:
    ///   - `.lost`: the lease is no longer held, or a later holder has used the key; nothing was changed.
    ///   - `.conflict`: the key belongs to another lock.
    ///   - `.invalidArgument`: nothing was sent.
    ///   - `.connectionLost`, `.cancelled`, `.timedOut`: if `mayHaveRun` is set, the write may have happened, or may still
    ///     happen unless a later holder uses the key before. Setting it again is safe while the lease is held.
    ///   - `.outOfMemory`, `.notPermitted`, `.serverError`, `.notConnected`, `.stopped`.
    public func set(
        _ key: String, to value: RedisArgument, ttl: Duration? = nil
    ) async throws(RedisDCError) {
        if let ttl, ttl < .milliseconds(1) {
            throw RedisDCError(
                .invalidArgument,
                "cannot set the guarded key \"\(key)\": ttl is \(ttl), expected 1 ms or more")
        }
        var arguments = [value]
        if let ttl { arguments += ["PX", .integer(Int(min(ttl, .maxWait) / .milliseconds(1)))] }
        _ = try await run(GuardedScript.set, keys: [key], arguments: arguments)
    }

    /// Deletes a key. Its fence stays.
    ///
    /// - Throws: what ``set(_:to:ttl:)`` throws.
    public func delete(_ key: String) async throws(RedisDCError) {
        _ = try await run(GuardedScript.delete, keys: [key])
    }

    /// Reads a key, and takes it over: no holder before this one can change it afterwards.
    ///
    /// - Returns: the value; `.null` if the key does not exist.
    /// - Throws: what ``set(_:to:ttl:)`` throws; `.wrongType` if the value is no string.
    public func get(_ key: String) async throws(RedisDCError) -> RESPValue {
        try await run(GuardedScript.get, keys: [key])
    }

    /// Runs a script that changes guarded keys in its own way. It does not run if a later holder has used one of the keys.
    ///
    /// - Parameters:
    ///   - keys: 1 to 64 keys, of one slot in a cluster.
    /// - Returns: the reply of the script.
    /// - Throws: what ``set(_:to:ttl:)`` throws; `.serverError` if the script fails, after what it has written.
    public func run(
        _ script: GuardedScript, keys: [String], arguments: [RedisArgument] = []
    ) async throws(RedisDCError) -> RESPValue {
        guard (1...64).contains(keys.count) else {
            throw RedisDCError(.invalidArgument, "a guarded script has \(keys.count) keys, expected 1 to 64")
        }
        let fences = try keys.map { (key) throws(RedisDCError) in try Self.fenceKey(key) }
        try lease.check()
        let fence = lease.fence
        let lock: RedisArgument = .string("\(lease.engine.namespace.name):\(lease.name)")
        let reply: RESPValue
        do {
            reply = try await redis.script(
                script.script, keys: keys + fences, arguments: arguments + [.string(String(fence)), lock], timeout: nil)
        } catch { throw RedisDCError(error, key: keys.joined(separator: ", ")) }
        let parts = reply.array ?? []
        switch parts.first?.string {
        // An array of Redis ends at the first element that is nil.
        case "ok": return parts.count > 1 ? parts[1] : .null
        case "late":
            throw RedisDCError(
                .lost,
                "\"\(lease.name)\" has a later holder, which has used \(Self.list(keys)): nothing was changed with the fence \(fence)"
            )
        case "other":
            throw RedisDCError(
                .conflict,
                "\(Self.list(keys)) belongs to another lock than \"\(lease.name)\": use one lock for all changes of a key"
            )
        default: throw RedisDCError(.serverError, "unexpected reply: \(reply.form)")
        }
    }

    private static func list(_ keys: [String]) -> String { keys.map { "\"\($0)\"" }.joined(separator: ", ") }

    /// The key of the fence, in the same slot of a cluster as the key itself.
    static func fenceKey(_ key: String) throws(RedisDCError) -> String {
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
    let script: RedisScript

    /// Makes a script from its Lua source, which sees `KEYS` and `ARGV` as without a guard, and may return a reply.
    public init(_ source: String) {
        script = RedisScript(
            """
            local function guard()
            \(Self.guardSource)
            end
            local refusal = guard()
            if refusal then return refusal end
            for number = #KEYS, #KEYS / 2 + 1, -1 do KEYS[number] = nil end
            ARGV[#ARGV] = nil
            ARGV[#ARGV] = nil
            local function body()
            \(source)
            end
            return {'ok', body()}
            """)
    }

    private static let guardSource = String(decoding: PackageResources.guard_lua, as: UTF8.self)
    fileprivate static let set = GuardedScript("return redis.call('SET', KEYS[1], unpack(ARGV))")
    fileprivate static let get = GuardedScript("return redis.call('GET', KEYS[1])")
    fileprivate static let delete = GuardedScript("return redis.call('DEL', KEYS[1])")
}
