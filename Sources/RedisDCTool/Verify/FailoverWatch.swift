// Notices the failovers of a deployment that others fail over.
import Hiredis
import Verification

/// Counts the histories of replication that the masters report: a promoted or restarted master begins a new one.
///
/// It needs the right to `INFO`. Without it, the number of failovers is unknown.
struct FailoverWatch {
    let redis: RedisClient
    let recorder: Recorder

    /// Returns whether the user may read what is needed.
    func isPermitted() async -> Bool {
        guard let masters = try? await redis.masters(), let master = masters.first else { return false }
        return await id(of: master) != nil
    }

    /// Records each new history until the task is cancelled.
    func run() async {
        var known: Set<String> = []
        var isFirst = true
        while !Task.isCancelled {
            if let masters = try? await redis.masters() {
                for master in masters {
                    guard let id = await id(of: master), known.insert(id).inserted, !isFirst else { continue }
                    recorder.record(Event(.failover, at: Recorder.now, process: recorder.process, note: "noticed"))
                }
                isFirst = known.isEmpty
            }
            try? await Task.sleep(for: .milliseconds(500))
        }
    }

    private func id(of master: RedisMaster) async -> String? {
        let text = try? await master.send(["INFO", "replication"], timeout: .seconds(2)).string
        let line = text?.split(whereSeparator: \.isNewline).first { $0.hasPrefix("master_replid:") }
        return line.map { String($0.dropFirst("master_replid:".count)) }
    }
}
