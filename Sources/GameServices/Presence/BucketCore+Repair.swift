// After a failover: repeats the batches that Redis has confirmed and lost.
//
// Replication is asynchronous, so a promoted replica may lack the last writes. Redis keeps the number of the last batch of
// each session, so it says exactly what is missing: the batches after that one. They are repeated under their numbers, so
// each has one effect. On a new connection that happens before the client gives it to anybody else.
import CoordinationBase
import Hiredis

extension BucketCore {
    /// Runs a script for a repair.
    typealias RepairScript = @Sendable (RedisScript, [RedisArgument]) async -> ConnectionScripts.Answer

    /// Lets a heartbeat come first on each new connection.
    func observeConnections() {
        guard stopObserving == nil, configuration.repairTime > .zero, let redis = redis as? any EventLoopRedis else {
            return
        }
        stopObserving = redis.sendFirst(for: keys.all[0]) { [weak self] connection in
            await self?.compare(redis, connection)
        }
    }

    /// Compares what the process knows with the server of a new connection.
    private func compare(_ redis: any EventLoopRedis, _ connection: NewConnection) async {
        guard let session, session.answered > 0 else { return }
        let limit = min(configuration.callTimeout, .maxWait)
        let scripts = ConnectionScripts(
            redis: redis, connection: connection, clock: clock, timeout: limit / 2, end: clock.now() + limit)
        let keys = keys.all
        let run: RepairScript = { await scripts.run($0, keys: keys, arguments: $1) }
        guard case .reply(let reply) = await run(PresenceScripts.sweep, sweepArguments(session, leaving: false)),
            let parts = reply.array, self.session?.id == session.id
        else { return }
        switch parts.first?.string {
        case "rolled back": await repairOrLose(session.id, after: parts.last?.integer, run)
        case "lost": await repairOrLose(session.id, after: nil, run)
        default: break
        }
    }

    /// Repeats what Redis lacks, over the client's connection.
    ///
    /// - Parameter last: the number of the last batch that Redis has; `nil` if it does not know the session.
    /// - Returns: whether the session goes on.
    @discardableResult
    func repairOrLose(_ id: String, after last: Int?) async -> Bool {
        let (redis, keys, timeout) = (redis, keys.all, configuration.callTimeout)
        return await repairOrLose(id, after: last) { script, arguments in
            do throws(RedisError) {
                return .reply(try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout))
            } catch { return error.isTransient ? .interrupted : .refused }
        }
    }

    @discardableResult
    private func repairOrLose(_ id: String, after last: Int?, _ run: RepairScript) async -> Bool {
        guard session?.id == id else { return false }
        let cause = last == nil ? causeOfLoss : .dataLost
        confirmed.forgetOld(clock.now())
        switch cause == .expired ? .impossible : await repair(id, after: last, run) {
        case .repaired: return session?.id == id
        // The next heartbeat, or the next connection, begins again.
        case .interrupted: return session?.id == id
        case .impossible:
            lose(id, cause)
            return false
        }
    }

    private enum Repair {
        case repaired
        case interrupted
        /// Redis refuses it, or the process no longer knows what is missing.
        case impossible
    }

    private func repair(_ id: String, after last: Int?, _ run: RepairScript) async -> Repair {
        let (isUnknown, last) = (last == nil, last ?? 0)
        // With the last one that Redis has, if it is remembered: the reply to its repetition may be lost, which has the
        // versions that the next ones expect.
        guard let answered = session?.answered,
            let missing = confirmed.batches(from: last, through: answered)
                ?? confirmed.batches(from: last + 1, through: answered)
        else { return .impossible }
        if isUnknown {
            switch await run(PresenceScripts.join, joinArguments(id)) {
            case .interrupted: return .interrupted
            case .reply(let reply) where reply.array?.first?.string == "ok": break
            case .reply, .refused: return .impossible
            }
        }
        var versions: [Int: Int] = [:]
        // Also if this is interrupted, and for the next repair.
        defer { confirmed.expect(versions) }
        var count = 0
        for batch in missing {
            guard session?.id == id else { return .impossible }
            let operations = batch.operations.map { $0.expecting(versions) }
            let arguments = repeatArguments(operations.map(\.encoded), id, batch.number)
            switch await run(PresenceScripts.repeat, arguments) {
            case .interrupted: return .interrupted
            case .refused: return .impossible
            case .reply(let reply):
                switch reply.array?.first?.string {
                case "ok":
                    guard let bytes = reply.array?.last?.bytes,
                        let results = PresenceResult.decode(bytes, session: id), results.count == operations.count
                    else { return .impossible }
                    received(results, of: batch, &versions)
                    if batch.number > last { count += results.count }
                // Another connection has carried it out meanwhile.
                case "late": continue
                default: return .impossible
                }
            }
        }
        instruments.repaired(count)
        requestTick()
        return .repaired
    }

    /// Takes over the results of a repeated batch. Connections whose objects others have now are lost.
    private func received(_ results: [PresenceResult], of batch: ConfirmedBatch, _ versions: inout [Int: Int]) {
        highestVersion = results.reduce(highestVersion) { max($0, $1.version) }
        var lost: [PresenceOwner] = []
        for (index, result) in results.enumerated() {
            let former = batch.results[index]
            if former.status == .done, result.status == .done {
                guard batch.operations[index].storesObject, former.version != result.version else { continue }
                versions[former.version] = result.version
            } else if former.status == .done, let owner = batch.operations[index].owner, owners[owner.token] != nil {
                lost.append(owner)
            }
        }
        confirmed.update(batch.number, results)
        if !lost.isEmpty { lose(lost) }
    }

    private func joinArguments(_ id: String) -> [RedisArgument] {
        [
            .bytes(randomBytes()), .bytes(randomBytes()), .string(id), .integer(configuration.ttl.wholeMilliseconds),
        ]
    }

    private func repeatArguments(_ operations: [[UInt8]], _ id: String, _ number: Int) -> [RedisArgument] {
        var header = Array(id.utf8)
        header.append(number: number)
        return [.integer(highestVersion), .bytes(randomBytes()), .bytes(logLimits), .bytes(header)]
            + operations.map { .bytes($0) }
    }
}
