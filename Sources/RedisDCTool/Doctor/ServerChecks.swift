import Hiredis

/// The checks of a server's settings: what the failure of a machine, or a full memory, can lose.
struct ServerChecks {
    let state: ServerState

    var findings: [Finding] {
        var findings = [version]
        if let info = state.info {
            findings.append(persistence(info))
            if info["aof_enabled"] == "1", let policy = state.config?["appendfsync"] { findings.append(fsync(policy)) }
            findings.append(memory(info))
        }
        if state.config == nil {
            findings.append(
                Finding(
                    .note, "settings",
                    "not checked: \(ServerState.settings.joined(separator: ", ")): this user may not call CONFIG GET",
                    advice: "run `redisdc doctor` as a user with +config|get; nothing else depends on it"))
        }
        return findings
    }

    private var version: Finding {
        guard let info = state.info else {
            return Finding(
                .note, "version",
                "not checked: version, persistence, memory, role and replicas: this user may not call INFO",
                advice: "grant +info to check them; nothing else depends on it")
        }
        if let valkey = info["valkey_version"] {
            return Finding(.ok, "version", "Valkey \(valkey), compatible with Redis \(info["redis_version"] ?? "?")")
        }
        return Finding(.ok, "version", "Redis \(info["redis_version"] ?? "?")")
    }

    private func persistence(_ info: [Substring: Substring]) -> Finding {
        if info["aof_enabled"] == "1" { return Finding(.ok, "persistence", "append-only file") }
        return Finding(
            .note, "persistence", "no append-only file: a restart loses permits and messages",
            advice: "set appendonly yes, unless this loss is acceptable")
    }

    private func fsync(_ policy: String) -> Finding {
        switch policy {
        case "always": Finding(.ok, "fsync", "every write is on disk before its reply (appendfsync always)")
        case "everysec":
            Finding(
                .note, "fsync",
                "appendfsync everysec: when the machine fails, the writes of the last two seconds can be lost",
                advice: "set appendfsync always, unless this loss is acceptable")
        default:
            Finding(
                .note, "fsync",
                "appendfsync \(policy): when the machine fails, all writes that the system has not yet stored are lost",
                advice: "set appendfsync always, or everysec if the loss of two seconds is acceptable")
        }
    }

    private func memory(_ info: [Substring: Substring]) -> Finding {
        let policy = info["maxmemory_policy"] ?? "noeviction"
        if policy == "noeviction" || info["maxmemory"] == "0" {
            return Finding(.ok, "memory", "no keys are evicted (maxmemory-policy \(policy))")
        }
        return Finding(
            .note, "memory", "maxmemory-policy \(policy) may evict semaphores and messages",
            advice: "set maxmemory-policy noeviction, or use a separate server for RedisDC")
    }
}
