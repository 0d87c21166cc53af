// Sends the queued operations, a batch at a time.
import CoordinationBase
import Hiredis

extension BucketCore {
    private static let maxOperations = 64
    private static let maxBytes = 64 << 10

    /// Sends batches until the queue is empty.
    func drain() async {
        while !queue.isEmpty, !isStopped {
            guard let session = await currentSession() else { continue }
            let batch = takeBatch(of: session.id)
            if !batch.isEmpty { await send(batch, of: session.id) }
        }
        isDraining = false
    }

    // MARK: The session

    /// Returns the session, which is begun if there is none, or `nil` if the queue has changed
    /// meanwhile.
    private func currentSession() async -> Session? {
        if let session { return session }
        observeConnections()
        // Operations of a lost session need no new one.
        failLost(except: nil)
        let id = randomSessionID()
        var pause = Duration.milliseconds(20)
        while !queue.isEmpty, !isStopped {
            let reply: RESPValue
            let begun = clock.now()
            do throws(RedisError) {
                reply = try await redis.script(
                    PresenceScripts.join, keys: keys.all,
                    arguments: [
                        .bytes(randomBytes()), .bytes(randomBytes()), .string(id),
                        .integer(configuration.ttl.wholeMilliseconds),
                    ])
            } catch {
                guard await pauseAfter(error, &pause, else: { failAll($0) }) else { return nil }
                continue
            }
            guard reply.array?.first?.string == "ok" else {
                if reply.array?.first?.string != "lost" { failAll(GameServiceError(unexpected: reply)) }
                return nil
            }
            session = Session(id: id, renewed: begun)
            requestTick()
            return session
        }
        return nil
    }

    /// After a transient error, waits a moment and returns `true`; otherwise calls `fail`.
    private func pauseAfter(
        _ error: RedisError, _ pause: inout Duration, else fail: (GameServiceError) -> Void
    ) async -> Bool {
        guard error.isTransient, !isStopped else {
            fail(isStopped ? .hasStopped : GameServiceError(error))
            return false
        }
        failOverdue(error)
        try? await clock.sleep(pause)
        pause = min(pause * 2, .seconds(1))
        return !isStopped
    }

    // MARK: The queue

    /// Takes the next operations from the queue. Those of other sessions fail.
    private func takeBatch(of id: String) -> [Queued] {
        failLost(except: id)
        var size = 0
        var batch: [Queued] = []
        for queued in queue.prefix(Self.maxOperations) {
            size += queued.encoded.count
            if !batch.isEmpty, size > Self.maxBytes { break }
            batch.append(queued)
        }
        queue.removeFirst(batch.count)
        return batch
    }

    /// Fails the queued operations of sessions that have ended.
    private func failLost(except id: String?) {
        let lost = queue.filter { $0.operation.owner.map { $0.session != id } ?? false }
        guard !lost.isEmpty else { return }
        queue.removeAll { $0.operation.owner.map { $0.session != id } ?? false }
        for queued in lost { failLost(queued) }
    }

    private func failLost(_ queued: Queued) {
        // The client is disconnected already.
        let result: Result<PresenceResult, GameServiceError> =
            queued.operation.isDisconnect
            ? .success(PresenceResult(status: .superseded, version: 0)) : .failure(.sessionLost)
        finish(queued.id, result)
    }

    /// Fails the operations that have waited for as long as a call may take. A disconnect stays in the
    /// queue: the session would keep its client present.
    private func failOverdue(_ error: RedisError) {
        let now = clock.now()
        var failure = GameServiceError(error)
        failure.mayHaveRun = false
        for queued in queue where queued.deadline <= now { finish(queued.id, .failure(failure)) }
        queue.removeAll { $0.deadline <= now && !$0.operation.isDisconnect }
    }

    private func failAll(_ error: GameServiceError) {
        let all = queue
        queue = []
        for queued in all { finish(queued.id, .failure(error)) }
    }

    // MARK: A batch

    /// Sends a batch until it is answered, or its session has ended.
    private func send(_ batch: [Queued], of id: String) async {
        guard session?.id == id else { return requeue(batch) }
        session?.sent += 1
        let number = session?.sent ?? 0
        let arguments = applyArguments(batch, id, number)
        var pause = Duration.milliseconds(20)
        var mayHaveRun = false
        instruments.batch()
        while true {
            do throws(RedisError) {
                let reply = try await redis.script(PresenceScripts.apply, keys: keys.all, arguments: arguments)
                let parts = reply.array ?? []
                switch parts.first?.string {
                // What Redis has lost comes first, and then this batch under its number.
                case "rolled back" where await repairOrLose(id, after: parts.last?.integer),
                    "lost" where await repairOrLose(id, after: nil):
                    if isStopped { return requeue(batch, mayHaveRun: mayHaveRun) }
                    // Also if the repair was interrupted: a moment later there is another connection.
                    try? await clock.sleep(.milliseconds(5))
                    failOverdue(batch, mayHaveRun)
                    continue
                default: return receive(reply, batch, number, id, mayHaveRun: mayHaveRun)
                }
            } catch {
                mayHaveRun = mayHaveRun || error.mayHaveRun
                let now = clock.now()
                var failure = GameServiceError(error)
                failure.mayHaveRun = mayHaveRun
                for queued in batch where queued.deadline <= now { finish(queued.id, .failure(failure)) }
                let goesOn = await pauseAfter(error, &pause) { failure in
                    for queued in batch { finish(queued.id, .failure(failure)) }
                }
                if goesOn { continue }
                // The number is used again only when the batch has certainly not run.
                if mayHaveRun { lose(id, .dataLost) } else if session?.id == id { session?.sent = number - 1 }
                return
            }
        }
    }

    private func applyArguments(_ batch: [Queued], _ id: String, _ number: Int) -> [RedisArgument] {
        var header = Array(id.utf8)
        header.append(number: number)
        return ["", .bytes(randomBytes()), .bytes(logLimits), .bytes(header)] + batch.map { .bytes($0.encoded) }
    }

    /// Fails the calls of a batch that have waited for as long as a call may take. The batch is still carried out.
    private func failOverdue(_ batch: [Queued], _ mayHaveRun: Bool) {
        let now = clock.now()
        let failure = GameServiceError(
            .connectionLost, "Redis has lost the last changes and has not taken them again", mayHaveRun: mayHaveRun)
        for queued in batch where queued.deadline <= now { finish(queued.id, .failure(failure)) }
    }

    private func receive(_ reply: RESPValue, _ batch: [Queued], _ number: Int, _ id: String, mayHaveRun: Bool) {
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "ok":
            guard let bytes = parts.last?.bytes, let results = PresenceResult.decode(bytes, session: id),
                results.count == batch.count
            else { break }
            guard var current = session, current.id == id else {
                // Another answer has ended the session meanwhile.
                return requeue(batch, mayHaveRun: true)
            }
            current.answered = current.sent
            session = current
            highestVersion = results.reduce(highestVersion) { max($0, $1.version) }
            confirmed.append(
                ConfirmedBatch(
                    number: number, operations: batch.map(\.operation), results: results, confirmedAt: clock.now()))
            for (queued, result) in zip(batch, results) { complete(queued, result) }
            return
        case "lost":
            lose(id, causeOfLoss)
            return requeue(batch, mayHaveRun: mayHaveRun)
        case "rolled back":
            lose(id, .dataLost)
            return requeue(batch, mayHaveRun: mayHaveRun)
        default: break
        }
        lose(id, .dataLost)
        for queued in batch {
            finish(queued.id, .failure(GameServiceError(unexpected: reply)))
        }
    }

    private func complete(_ queued: Queued, _ result: PresenceResult) {
        switch queued.operation {
        case .connect(let user, let client, let token):
            let owner = PresenceOwner(user: user, client: client, session: result.session, token: token)
            owners[token] = owner
            if !finish(queued.id, .success(result)) {
                // The caller has given up and has no connection that it could end.
                enqueue(.disconnect(owner))
            }
            return
        case .disconnect(let owner):
            owners[owner.token] = nil
            inUseUntil = max(inUseUntil, clock.now() + max(maxGrace + .seconds(1), configuration.linger))
            requestTick()
        case .put(let owner, _, _, _, let grace, _):
            maxGrace = max(maxGrace, .milliseconds(grace))
            if result.status == .superseded { owners[owner.token] = nil }
        case .update, .remove: break
        }
        finish(queued.id, .success(result))
    }

    /// Puts back the operations of a batch that has had no effect that remains. Those of the session
    /// then fail; others run under the next one.
    ///
    /// - Parameter mayHaveRun: whether the batch may have run before the session ended. To connect
    ///   twice is harmless, to update twice is not.
    private func requeue(_ batch: [Queued], mayHaveRun: Bool = false) {
        var again: [Queued] = []
        for queued in batch {
            switch queued.operation {
            case .connect: again.append(queued)
            case .update where !mayHaveRun: again.append(queued)
            case .update:
                finish(
                    queued.id,
                    .failure(GameServiceError(.connectionLost, "the session ended meanwhile", mayHaveRun: true)))
            default: failLost(queued)
            }
        }
        queue.insert(contentsOf: again, at: 0)
    }
}

extension GameServiceError {
    static var sessionLost: GameServiceError {
        GameServiceError(.lost, "the session of this process in the bucket has ended: connect the client again")
    }
}
