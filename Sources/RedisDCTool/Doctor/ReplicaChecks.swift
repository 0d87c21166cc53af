import Hiredis

/// The checks of a server's replication: what a failover can lose.
struct ReplicaChecks {
    /// One replica as its primary describes it in `INFO`.
    private struct Replica {
        let address: String
        let state: String
        /// The time since its last confirmation in seconds.
        let lag: Int

        /// Reads `ip=127.0.0.1,port=6380,state=online,offset=14,lag=0`.
        init(_ text: Substring) {
            let pairs = text.split(separator: ",").compactMap { field -> (Substring, Substring)? in
                let parts = field.split(separator: "=", maxSplits: 1)
                return parts.count == 2 ? (parts[0], parts[1]) : nil
            }
            let fields = Dictionary(pairs) { first, _ in first }
            address = "\(fields["ip"] ?? "?"):\(fields["port"] ?? "?")"
            state = String(fields["state"] ?? "unknown")
            lag = fields["lag"].flatMap { Int($0) } ?? 0
        }
    }

    let state: ServerState
    /// The time to live of the program's sessions in seconds.
    let ttl: Int

    var findings: [Finding] {
        guard let info = state.info else { return [] }
        if info["role"] == "slave" { return [role(info)] }
        let count = info["connected_slaves"].flatMap { Int($0) } ?? 0
        let replicas = (0..<count).compactMap { info["slave\($0)"].map { Replica($0) } }
        return health(of: replicas) + minimum(info, replicas.count) + limit
    }

    private func role(_ info: [Substring: Substring]) -> Finding {
        let link =
            info["master_link_status"] == "up" ? "" : ", and it has no connection to its primary: its data is old"
        return Finding(
            .bad, "role", "this is a replica, which refuses all writes\(link)",
            advice: "connect to the primary" + (link.isEmpty ? "" : ", and repair the connection between the servers"))
    }

    private func health(of replicas: [Replica]) -> [Finding] {
        if replicas.isEmpty { return [Finding(.ok, "replicas", "none is connected")] }
        return replicas.map { replica in
            if replica.state != "online" {
                return Finding(
                    .note, "replicas",
                    "\(replica.address) is not synchronized (\(replica.state)): a failover to it now loses data",
                    advice: "wait until it is online; if that never happens, see the logs of both servers")
            }
            let limit = maxLag ?? 0
            if replica.lag > (limit > 0 ? limit : 10) {
                return Finding(
                    .note, "replicas",
                    "\(replica.address) has confirmed nothing for \(replica.lag) s: "
                        + "a failover to it loses the writes since",
                    advice: "check that it runs, and the network between the servers")
            }
            return Finding(.ok, "replicas", "\(replica.address) is online, lag \(replica.lag) s")
        }
    }

    private var needed: Int? { state.config?["min-replicas-to-write"].flatMap { Int($0) } }
    private var maxLag: Int? { state.config?["min-replicas-max-lag"].flatMap { Int($0) } }

    private func minimum(_ info: [Substring: Substring], _ connected: Int) -> [Finding] {
        let version = info["redis_version"]?.split(separator: ".").first.flatMap { Int($0) }
        if let needed, needed > 0, let version, version < 7 {
            return [
                Finding(
                    .note, "min-replicas",
                    "before Redis 7.0, min-replicas-to-write does not apply to scripts: a primary that is cut off from "
                        + "its replicas goes on granting locks while another one is promoted",
                    advice: "use Redis 7.0 or later")
            ]
        }
        // Redis reports this count only if both settings are in force.
        let good = info["min_slaves_good_slaves"].flatMap { Int($0) }
        if let good, good < needed ?? 1 {
            return [
                Finding(
                    .bad, "min-replicas",
                    "all writes are refused: "
                        + "\(good) of \(needed.map { "\($0)" } ?? "the required") replicas confirm in time",
                    advice: "repair the replicas, or lower min-replicas-to-write")
            ]
        }
        guard let needed, connected > 0 || needed > 0 else { return [] }
        if needed == 0 {
            return [
                Finding(
                    .note, "min-replicas",
                    "min-replicas-to-write 0: a primary that is cut off from its replicas goes on granting locks "
                        + "while another one is promoted",
                    advice: "set min-replicas-to-write 1, so that it stops")
            ]
        }
        if maxLag == 0 { return [] }
        return [Finding(.ok, "min-replicas", "writes need \(needed) replicas (min-replicas-to-write)")]
    }

    private var limit: [Finding] {
        guard let needed, needed > 0, let lag = maxLag else { return [] }
        if lag == 0 {
            return [
                Finding(
                    .note, "max-lag", "min-replicas-max-lag 0 disables min-replicas-to-write",
                    advice: "set min-replicas-max-lag to less than the session TTL (\(ttl) s)")
            ]
        }
        if lag >= ttl {
            return [
                Finding(
                    .note, "max-lag",
                    "min-replicas-max-lag \(lag): a primary that is cut off grants locks for \(lag) s, "
                        + "not less than the session TTL (\(ttl) s)",
                    advice: "set it to less than the TTL; pass a TTL other than 15 s with --ttl")
            ]
        }
        return [Finding(.ok, "max-lag", "\(lag) s, less than the session TTL (\(ttl) s)")]
    }
}
