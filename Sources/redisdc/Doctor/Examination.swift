import CoordinationBase
import Hiredis
import RedisDC

/// The result of one check.
struct Finding: Encodable {
    enum Level: String, Encodable {
        case ok, note, bad

        var mark: String {
            switch self {
            case .ok: "[ok]  "
            case .note: "[note]"
            case .bad: "[BAD] "
            }
        }
    }

    var level: Level
    var check: String
    var result: String
    var advice: String?

    init(_ level: Level, _ check: String, _ result: String, advice: String? = nil) {
        self.level = level
        self.check = check
        self.result = result
        self.advice = advice
    }
}

/// The checks of `redisdc doctor`.
///
/// They change nothing on the server except keys of their own, which they delete.
struct Examination {
    let redis: RedisClient
    let configuration: RedisConfiguration
    private let id = UInt64.random(in: .min ... .max)

    init(redis: RedisClient, configuration: RedisConfiguration) {
        self.redis = redis
        self.configuration = configuration
    }

    mutating func findings() async -> [Finding] {
        let info = await info()
        return [version(info), transport()] + storage(info) + (await rights())
    }

    // MARK: The server

    /// The fields of `INFO`; `nil` if the user may not call it.
    private func info() async -> [Substring: Substring]? {
        guard let text = try? await redis.send("INFO").string else { return nil }
        let pairs = text.split(whereSeparator: \.isNewline).compactMap { line -> (Substring, Substring)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (line[..<colon], line[line.index(after: colon)...])
        }
        return Dictionary(pairs) { first, _ in first }
    }

    private func version(_ info: [Substring: Substring]?) -> Finding {
        guard let info else {
            return Finding(
                .note, "version", "unknown: this user may not call INFO",
                advice: "grant +info to check version, persistence and memory; nothing else depends on it")
        }
        if let valkey = info["valkey_version"] {
            return Finding(.ok, "version", "Valkey \(valkey), compatible with Redis \(info["redis_version"] ?? "?")")
        }
        return Finding(.ok, "version", "Redis \(info["redis_version"] ?? "?")")
    }

    private func transport() -> Finding {
        switch (configuration.tls, configuration.endpoint) {
        case (let tls?, _):
            tls.verification == .full
                ? Finding(.ok, "TLS", "on, certificate and host name verified")
                : Finding(
                    .note, "TLS", "on, but the server is not fully verified", advice: "use the default verification")
        case (nil, .unixSocket): Finding(.ok, "TLS", "off, on a Unix socket")
        case (nil, .tcp(let host, _)):
            ["127.0.0.1", "::1", "localhost"].contains(host)
                ? Finding(.ok, "TLS", "off, on this machine")
                : Finding(
                    .note, "TLS", "off: passwords and data are sent unencrypted",
                    advice: "use rediss:// unless the network is private")
        }
    }

    private func storage(_ info: [Substring: Substring]?) -> [Finding] {
        guard let info else { return [] }
        var findings: [Finding] = []
        if info["aof_enabled"] == "1" {
            findings.append(Finding(.ok, "persistence", "append-only file"))
        } else {
            findings.append(
                Finding(
                    .note, "persistence", "no append-only file: a restart loses permits and messages",
                    advice: "set appendonly yes, unless this loss is acceptable"))
        }
        let policy = info["maxmemory_policy"] ?? "noeviction"
        if policy == "noeviction" || info["maxmemory"] == "0" {
            findings.append(Finding(.ok, "memory", "no keys are evicted (maxmemory-policy \(policy))"))
        } else {
            findings.append(
                Finding(
                    .note, "memory", "maxmemory-policy \(policy) may evict semaphores and messages",
                    advice: "set maxmemory-policy noeviction, or use a separate server for RedisDC"))
        }
        if info["role"] == "slave" {
            findings.append(Finding(.bad, "role", "this is a replica", advice: "connect to the primary"))
        }
        return findings
    }

    // MARK: Permissions

    /// Uses a semaphore and a mutex in a namespace of its own, and returns the server's refusal if
    /// a command is not permitted.
    private func engineRefusal() async -> String? {
        let namespace = "doctor-\(id)"
        var settings = CoordinatorConfiguration()
        settings.callTimeout = .seconds(2)
        var refusal: String?
        do {
            try await withCoordinator(redis: redis, namespace: namespace, configuration: settings) { coordinator in
                let semaphore = try coordinator.semaphore("probe", permits: 0)
                try await semaphore.signal()
                try await semaphore.wait(timeout: .seconds(2))
                try await coordinator.mutex("probe-mutex").withLock(timeout: .seconds(2)) { _ in }
                _ = try await coordinator.list()
                try await semaphore.destroy()
            }
        } catch let error as RedisDCError where error.code == .notPermitted {
            refusal = error.message
        } catch {}
        let keys = EngineKeys(Namespace(namespace, partitions: 1)).scriptKeys(partition: 0)
        _ = try? await redis.send(RedisCommand(["DEL"] + keys.map { .string($0) }))
        return refusal
    }

    private func rights() async -> [Finding] {
        let key = "rdc:sem:doctor-\(id)"
        var missing: [String] = []
        func need(_ right: String, _ probe: RedisCommand) async {
            do throws(RedisError) { _ = try await redis.send(probe) } catch {
                if error.code == .notPermitted { missing.append("\(right) (\(error.message))") }
            }
        }
        await need("LPUSH on rdc:*", ["LPUSH", .string(key), "1"])
        await need("BRPOP on rdc:*", ["BRPOP", .string(key), "0.001"])
        await need("LLEN on rdc:*", ["LLEN", .string(key)])
        await need("DEL on rdc:*", ["DEL", .string(key)])
        await need("EVAL", ["EVAL", "return 1", "0"])
        await need("PUBLISH on rdc:*", ["PUBLISH", "rdc:doctor-\(id)", ""])
        do {
            try await redis.withSubscription(to: ["rdc:doctor-\(id)"]) { _ in }
        } catch let error as RedisError where error.code == .notPermitted {
            missing.append("SUBSCRIBE on rdc:* (\(error.message))")
        } catch {}
        if let refusal = await engineRefusal() { missing.append("a command of the engine's scripts (\(refusal))") }
        var findings = missing.map {
            Finding(
                .bad, "rights", "missing: \($0)",
                advice: "use ACL SETUSER with the rules in SECURITY.md: ~rdc:* &rdc:* and the commands listed there")
        }
        if missing.isEmpty { findings.append(Finding(.ok, "rights", "all required rights are granted")) }
        do {
            _ = try await redis.send("CLIENT", "UNBLOCK", "0")
        } catch {
            findings.append(
                Finding(
                    .note, "rights",
                    "no CLIENT UNBLOCK: cancelling a blocking command takes up to 1 s, and its waiter queues again every second",
                    advice:
                        "grant +client|id +client|unblock for prompt cancellation; correctness does not depend on it"))
        }
        return findings
    }
}
