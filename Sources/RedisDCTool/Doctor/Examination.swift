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
    /// The namespace whose rights are checked; `nil` for all of `rdc:`.
    let namespace: String?
    /// The time to live of the program's sessions in seconds.
    let ttl: Int
    private let id = UInt64.random(in: .min ... .max)

    init(redis: RedisClient, configuration: RedisConfiguration, namespace: String?, ttl: Int) {
        self.redis = redis
        self.configuration = configuration
        self.namespace = namespace
        self.ttl = ttl
    }

    func findings() async -> [Finding] {
        [transport()] + (await servers())
            + (await DamageCheck(redis: redis, namespace: namespace ?? "default").findings()) + (await rights())
    }

    /// The checks of each master; in a cluster their results begin with its address.
    private func servers() async -> [Finding] {
        let masters: [RedisMaster]
        do { masters = try await redis.masters() } catch {
            return [Finding(.bad, "servers", "\(error)", advice: "check that the servers of the cluster run")]
        }
        var findings: [Finding] = []
        for master in masters {
            let state = await ServerState(master)
            for var finding in ServerChecks(state: state).findings + ReplicaChecks(state: state, ttl: ttl).findings {
                if masters.count > 1 { finding.result = "\(master.endpoint): \(finding.result)" }
                findings.append(finding)
            }
        }
        return findings
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

    // MARK: Permissions

    /// Uses a semaphore and a mutex, in a namespace of its own unless one was chosen, and returns
    /// the server's refusal if a command is not permitted.
    private func engineRefusal() async -> String? {
        let own = "doctor-\(id)"
        let keys = EngineKeys(Namespace(namespace ?? own, partitions: 1))
        var settings = CoordinatorConfiguration()
        settings.callTimeout = .seconds(2)
        var refusal: String?
        do {
            let stored = try await redis.send("HGET", .string(keys.state(partition: 0)), "partitions").string
            settings.partitions = stored.flatMap { Int(StoredLayout.parse($0).partitions) } ?? 1
            try await withCoordinator(redis: redis, namespace: namespace ?? own, configuration: settings) {
                let semaphore = try $0.semaphore(own, permits: 0)
                try await semaphore.signal()
                try await semaphore.wait(timeout: .seconds(2))
                try await $0.mutex(own + "-mutex").withLock(timeout: .seconds(2)) { _ in }
                _ = try await $0.list()
                try await semaphore.destroy()
            }
        } catch let error as RedisDCError where error.code == .notPermitted {
            refusal = error.message
        } catch let error as RedisError where error.code == .notPermitted {
            refusal = error.message
        } catch {}
        if namespace == nil {
            _ = try? await redis.send(RedisCommand(["DEL"] + keys.scriptKeys(partition: 0).map { .string($0) }))
        }
        return refusal
    }

    private func rights() async -> [Finding] {
        let key = namespace.map { "rdc:{\($0):sem:doctor-\(id)}" } ?? "rdc:sem:doctor-\(id)"
        let prefix = namespace.map { "rdc:{\($0):" } ?? "rdc:"
        let channel = "\(prefix)doctor-\(id)"
        var missing: [String] = []
        func need(_ right: String, _ probe: RedisCommand) async {
            do throws(RedisError) { _ = try await redis.send(probe) } catch {
                if error.code == .notPermitted { missing.append("\(right) (\(error.message))") }
            }
        }
        await need("LPUSH on \(prefix)*", ["LPUSH", .string(key), "1"])
        await need("BRPOP on \(prefix)*", ["BRPOP", .string(key), "0.001"])
        await need("LLEN on \(prefix)*", ["LLEN", .string(key)])
        await need("DEL on \(prefix)*", ["DEL", .string(key)])
        await need("EVAL", ["EVAL", "return 1", "0"])
        await need("PUBLISH on \(prefix)*", ["PUBLISH", .string(channel), ""])
        do {
            try await redis.withSubscription(to: [.channel(channel)]) { _ in }
        } catch let error as RedisError where error.code == .notPermitted {
            missing.append("SUBSCRIBE on \(prefix)* (\(error.message))")
        } catch {}
        if let refusal = await engineRefusal() { missing.append("a command of the engine's scripts (\(refusal))") }
        var findings = missing.map {
            Finding(
                .bad, "rights", "missing: \($0)",
                advice:
                    "use ACL SETUSER with the rules in SECURITY.md: "
                    + "~\(prefix)* &\(prefix)* and the commands listed there")
        }
        if missing.isEmpty { findings.append(Finding(.ok, "rights", "all required rights are granted")) }
        do {
            for master in try await redis.masters() { _ = try await master.send(["CLIENT", "UNBLOCK", "0"]) }
        } catch {
            findings.append(
                Finding(
                    .note, "rights",
                    "no CLIENT UNBLOCK: cancelling a blocking command takes up to 1 s, "
                        + "and its waiter queues again every second",
                    advice:
                        "grant +client|id +client|unblock for prompt cancellation; correctness does not depend on it"))
        }
        return findings
    }
}
