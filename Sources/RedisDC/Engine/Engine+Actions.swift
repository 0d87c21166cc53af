// Carries out the state machine's actions, one function for each event's enum, and passes Redis's replies to it.
import CoordinationBase
import Hiredis

extension Engine {
    typealias Machine = EngineStateMachine

    // MARK: Actions

    func perform(_ action: Machine.StartAction) {
        if case .subscribe(let life) = action { subscribe(life) }
        arm()
    }

    func perform(_ action: Machine.SubscriptionAction) {
        switch action {
        case .none: break
        case .join(let life): Task { await join(life) }
        case .send(let request): send(request)
        }
        arm()
    }

    func perform(_ actions: [Machine.JoinAction]) {
        for action in actions {
            switch action {
            case .event(let event): publish(event)
            case .send(let request): send(request)
            }
        }
        arm()
    }

    /// - Parameter id: the caller's operation.
    func perform(_ action: Machine.CallAction, for id: UInt64?) {
        switch action {
        case .none: break
        case .send(let request): send(request)
        case .fail(let error): if let id { finish(id, .failure(error)) }
        case .sessionEnded(let end, let failure):
            perform(end)
            if let id, let failure { finish(id, .failure(failure)) }
        }
        arm()
    }

    func perform(_ action: Machine.AbandonAction) {
        switch action {
        case .none: break
        case .send(let request): send(request)
        case .fail(let id, let error): finish(id, .failure(error))
        }
        arm()
    }

    func perform(_ actions: [Machine.ReplyAction]) {
        for action in actions {
            switch action {
            case .sessionEnded(let end): perform(end)
            case .send(let request): send(request)
            case .retry(let request, let pause): Task { await send(request, after: pause) }
            case .finish(let id, let result): granted(id, result)
            case .lose(let claim, let error): lose(claim, error)
            case .event(let event): publish(event)
            }
        }
        arm()
    }

    func perform(_ actions: [Machine.WakeUpAction]) {
        for action in actions {
            switch action {
            case .sessionEnded(let end): perform(end)
            case .send(let request): send(request)
            case .finish(let id, let result): granted(id, result)
            case .lose(let claim, let error): lose(claim, error)
            case .recall(let cohort): cohort.recall(.waiting)
            }
        }
        arm()
    }

    func perform(_ action: Machine.GapAction) {
        switch action {
        case .none: break
        case .sessionEnded(let end): perform(end)
        case .send(let request): send(request)
        }
        arm()
    }

    func perform(_ actions: [Machine.TickAction]) {
        for action in actions {
            switch action {
            case .sessionEnded(let end): perform(end)
            case .send(let request): send(request)
            case .fail(let id, let error): fail(id, error)
            case .event(let event): publish(event)
            }
        }
        arm()
    }

    func perform(_ actions: [Machine.StopAction]) {
        for action in actions {
            switch action {
            case .finish(let id, let result): finish(id, result)
            case .lose(let claim, let error): lose(claim, error)
            }
        }
    }

    private func perform(_ actions: [Machine.SessionEndAction]) {
        for action in actions {
            switch action {
            case .event(let event): publish(event)
            case .fail(let id, let error): fail(id, error)
            case .lose(let claim, let error): lose(claim, error)
            case .subscribe(let life): subscribe(life)
            }
        }
        passOnConnection()
    }

    /// Ends an operation that may have run out of time because Redis cannot be reached.
    private func fail(_ id: UInt64, _ error: RedisDCError) {
        finish(id, .failure(error.explained(by: unreachable)))
    }

    /// Watches a lease before its caller has it, so that no loss is missed.
    private func granted(_ id: UInt64, _ result: Machine.Finish) {
        if case .success(.granted(let grant)) = result, runner.operations[id] != nil { watches[id] = grant.watch }
        finish(id, result)
    }

    private func lose(_ claim: UInt64, _ error: RedisDCError) {
        instruments.leaseLost()
        watches.removeValue(forKey: claim)?.lose(error)
    }

    // MARK: Requests

    private func send(_ request: EngineRequest, after pause: Duration) async {
        try? await clock.sleep(pause)
        send(request)
    }

    private func send(_ request: EngineRequest) {
        let connection = machine.connection
        let completion: @Sendable (Result<RESPValue, RedisError>) -> Void = { result in
            self.assumeIsolated { $0.received(result, request, sentOn: connection) }
        }
        let (keys, timeout) = (keys.keys(of: request), settings.heartbeatInterval)
        if newConnection?.0.isClosed == true { passOnConnection() }
        if let newConnection, machine.comesFirst(request) {
            newConnection.0.post(
                request.script, keys: keys, arguments: request.arguments, timeout: timeout, completion: completion)
        } else {
            redis.post(
                request.script, keys: keys, arguments: request.arguments, timeout: timeout, completion: completion)
        }
    }

    /// Compares what the process knows with the server of a new connection, and does again what is lost there. Returns when
    /// others may use the connection.
    func compare(on connection: NewConnection) async {
        let requests = machine.reconnected(now: now)
        passOnConnection()
        guard !requests.isEmpty else { return }
        await withCheckedContinuation { continuation in
            newConnection = (connection, continuation)
            for request in requests { send(request) }
            arm()
        }
    }

    /// Lets others use the new connection, if there is one.
    func passOnConnection() {
        guard let newConnection else { return }
        self.newConnection = nil
        newConnection.whenCompared.resume()
    }

    private func received(
        _ result: Result<RESPValue, RedisError>, _ request: EngineRequest, sentOn connection: UInt64
    ) {
        let answer: Result<EngineReply, Machine.Failure>
        switch result {
        case .success(let reply):
            answer =
                EngineReply(reply, to: request.operation).map { .success($0) }
                ?? .failure(
                    .fatal(RedisDCError(.serverError, "unexpected reply: \(reply.form)", mayHaveRun: true)))
        case .failure(let error):
            let failure = Machine.Failure(error, keys: keys)
            if case .retry = failure { instruments.retried() }
            answer = .failure(failure)
        }
        if case .success(.heartbeat) = answer { instruments.heartbeat(waiting: runner.operations.count) }
        perform(machine.reply(request, answer, sentOn: connection, now: now))
        if let newConnection, newConnection.0.isClosed || !machine.isComparing { passOnConnection() }
    }

    // MARK: The session

    private func join(_ life: SessionLife) async {
        let arguments = Join.arguments(
            life.id, epoch: randomID(), layout: namespace.layout, about: nodeDescription, machine: machine)
        do throws(RedisError) {
            let reply = try await redis.script(
                Scripts.join, keys: keys.all, arguments: arguments, timeout: settings.heartbeatInterval)
            switch Join.Reply(reply) {
            case .joined(let epoch, let next, let lastMayHaveExpired):
                perform(
                    machine.joined(
                        life.id, epoch: epoch, next: next, lastMayHaveExpired: lastMayHaveExpired, now: now))
            case .lost: perform(machine.joinedTooLate(life.id))
            case .conflict(let layout): await joinFailed(life, .fatal(namespace.conflict(with: layout)))
            case nil: await joinFailed(life, .fatal(RedisDCError(.serverError, "unexpected reply: \(reply.form)")))
            }
        } catch {
            await joinFailed(life, Machine.Failure(error, keys: keys))
        }
    }

    private func joinFailed(_ life: SessionLife, _ failure: Machine.Failure) async {
        if case .fatal(let error) = failure { publish(.sessionRefused(error)) }
        guard case .joinAgain(let life, let pause, let failing) = machine.joinFailed(life.id, failure, now: now) else {
            return
        }
        for (id, error) in failing { finish(id, .failure(error)) }
        try? await clock.sleep(pause)
        await join(life)
    }

    private func subscribe(_ life: SessionLife) {
        wakeUpTask?.cancel()
        guard usesWakeUps else {
            perform(machine.subscriptionChanged(life.id, isSubscribed: false, now: now))
            return
        }
        wakeUpTask = Task {
            await receiveWakeUps(from: redis, on: keys.wakeUpChannel(of: life.id), clock: clock) { wakeUp in
                self.assumeIsolated { $0.received(wakeUp, for: life) }
            }
        }
    }

    private func received(_ wakeUp: WakeUp, for life: SessionLife) {
        switch wakeUp {
        case .subscribed: perform(machine.subscriptionChanged(life.id, isSubscribed: true, now: now))
        case .unsubscribed(let error) where error.code == .clientStopped:
            let error = RedisDCError(error, key: keys.wakeUpChannel(of: life.id))
            for (id, error) in machine.clientStopped(error) { finish(id, .failure(error)) }
        case .unsubscribed:
            perform(machine.subscriptionChanged(life.id, isSubscribed: false, now: now))
            recheckCohorts()
        case .message(let bytes):
            perform(machine.wakeUpReceived(life.id, String(decoding: bytes, as: UTF8.self), now: now))
        case .gap:
            perform(machine.gap(life.id, now: now))
            recheckCohorts()
        }
    }

    /// Lets the cohorts know that others may be waiting without their knowledge.
    private func recheckCohorts() {
        for claim in machine.claims.values { claim.request.cohort?.recall(.unknown) }
    }
}

extension Namespace {
    /// The number of partitions and the version of the layout, as the state has them.
    var layout: String { StoredLayout.text(partitions: partitions) }

    /// The error for a namespace that is stored in another way. Nodes that disagree would look for a name in different
    /// places, or misread what they find.
    func conflict(with found: String) -> RedisDCError {
        let (found, version) = StoredLayout.parse(found)
        guard version == "\(StoredLayout.engineVersion)" else {
            return RedisDCError(
                .conflict,
                "namespace \"\(name)\" has layout \(version), this version of RedisDC uses layout "
                    + "\(StoredLayout.engineVersion): use another namespace, or stop all its nodes, delete its keys and start again"
            )
        }
        return RedisDCError(
            .conflict,
            "namespace \"\(name)\" has \(found) partitions, this coordinator is configured with \(partitions)")
    }
}

extension EngineStateMachine.Failure {
    init(_ error: RedisError, keys: PartitionKeys) {
        self = error.isTransient ? .retry(error) : .fatal(RedisDCError(error, key: keys.all.joined(separator: ", ")))
    }
}
