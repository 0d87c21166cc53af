// Heartbeats, sweeps and the subscription.
import CoordinationBase
import Hiredis

extension BucketCore {
    /// The maximum number of clients and objects that one sweep ends.
    private static let sweepBudget = 96

    /// Renews the session, ends what is due and receives changes, until the task is cancelled or the
    /// process no longer uses the bucket.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.follow() }
            await self.tickUntilUnused()
            group.cancelAll()
        }
    }

    private func tickUntilUnused() async {
        var failures = 0
        while !Task.isCancelled, !isStopped {
            var delay = configuration.heartbeat
            do throws(GameServiceError) {
                if let due = try await tick() { delay = min(delay, due) }
                failures = 0
            } catch {
                failures += 1
                if failures == 1, !isStopped { instruments.heartbeatFailed(error) }
                delay = min(delay, .milliseconds(50 << min(failures, 5)))
            }
            if await retireIfUnused() { return }
            await sleep(delay)
        }
    }

    /// Sleeps until the time has passed or a tick is requested.
    private func sleep(_ delay: Duration) async {
        if mustTick || delay <= .zero {
            mustTick = false
            return
        }
        let clock = clock
        let sleeper = Task<Void, Never> { try? await clock.sleep(delay) }
        self.sleeper = sleeper
        await withTaskCancellationHandler {
            await sleeper.value
        } onCancel: {
            sleeper.cancel()
        }
        self.sleeper = nil
        mustTick = false
    }

    /// Lets the next tick begin now.
    func requestTick() {
        mustTick = true
        sleeper?.cancel()
    }

    /// Sends one heartbeat, and returns the time until the next one is needed.
    @discardableResult
    func tick() async throws(GameServiceError) -> Duration? {
        let reply = try await sweep(leaving: false)
        if let position = reply.position { emit(.position(position)) }
        guard let due = reply.due else { return nil }
        // Processes that wait for the same moment spread a little; what one has done, another need not do.
        return due == .zero ? .zero : due + .milliseconds(Int.random(in: 1...20))
    }

    private struct SweepReply {
        var position: PresencePosition?
        /// The time until something is due.
        var due: Duration?
    }

    private func sweep(leaving: Bool) async throws(GameServiceError) -> SweepReply {
        let (session, begun) = (session, clock.now())
        let reply: RESPValue
        do throws(RedisError) {
            reply = try await redis.script(
                PresenceScripts.sweep, keys: keys.all, arguments: sweepArguments(session, leaving: leaving),
                timeout: configuration.heartbeatTimeout)
        } catch { throw GameServiceError(error) }
        let parts = reply.array ?? []
        if let session {
            switch parts.first?.string {
            case "lost" where leaving: lose(session.id, causeOfLoss)
            case "rolled back" where leaving: lose(session.id, .dataLost)
            case "lost": await repairOrLose(session.id, after: nil)
            case "rolled back": await repairOrLose(session.id, after: parts.last?.integer)
            default: if self.session?.id == session.id { self.session?.renewed = begun }
            }
        }
        guard parts.count >= 4 else { return SweepReply() }
        instruments.swept(parts[3].integer ?? 0)
        var bytes = PresenceBytes(parts[1].bytes ?? [])
        let position = bytes.position()
        let due = parts[2].integer ?? -1
        return SweepReply(position: position, due: due < 0 ? nil : .milliseconds(due))
    }

    func sweepArguments(_ session: Session?, leaving: Bool) -> [RedisArgument] {
        [
            .bytes(leaving ? [] : randomBytes()), .bytes(randomBytes()), .bytes(logLimits),
            .string(session?.id ?? ""), .integer(session?.answered ?? 0),
            .integer(configuration.ttl.wholeMilliseconds), leaving ? "leave" : "", .integer(Self.sweepBudget),
        ]
    }

    /// Ends the session, so that the grace periods of its clients begin, as far as Redis can be
    /// reached. Otherwise the session expires.
    func leave() async {
        guard let session else { return }
        let end = clock.now() + configuration.callTimeout
        var isLeaving = true
        while clock.now() < end {
            do throws(GameServiceError) {
                let reply = try await sweep(leaving: isLeaving)
                // From here on any process continues.
                if self.session?.id == session.id { self.session = nil }
                isLeaving = false
                guard reply.due == .zero else { return }
            } catch {
                guard error.isTransient else { return }
                do { try await clock.sleep(.milliseconds(50)) } catch { return }
            }
        }
    }

    // MARK: The subscription

    /// Receives changes while there are subscribers.
    private func follow() async {
        for await _ in subscriptionRequests.stream {
            var pause = Duration.milliseconds(50)
            while !subscribers.isEmpty, !Task.isCancelled {
                do throws(RedisError) {
                    try await receiveChanges()
                    pause = .milliseconds(50)
                } catch {
                    if Task.isCancelled { return }
                    try? await clock.sleep(pause)
                    pause = min(pause * 2, .seconds(5))
                }
            }
        }
    }

    private func receiveChanges() async throws(RedisError) {
        let subscription = try await redis.subscribe(
            to: [.channel(keys.changes)], buffer: SubscriptionBuffer(messages: 1024, policy: .dropOldest))
        self.subscription = subscription
        defer {
            subscription.cancel()
            self.subscription = nil
        }
        // The position tells subscribers whether they missed something before the subscription.
        requestTick()
        while !subscribers.isEmpty, let event = try await subscription.next() {
            switch event {
            case .message(let message):
                if let publication = PresencePublication(message.payload) {
                    emit(.changes(publication))
                } else {
                    requestTick()
                }
            case .gap: requestTick()
            }
        }
    }

    /// The limits of the log, as the scripts expect them.
    var logLimits: [UInt8] {
        var limits: [UInt8] = []
        limits.append(number: configuration.maxLoggedChanges)
        limits.append(number: configuration.maxLoggedBytes)
        return limits
    }

    /// A tag or an epoch.
    func randomBytes() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(integer: UInt64.random(in: 1 ... .max))
        return bytes
    }
}
