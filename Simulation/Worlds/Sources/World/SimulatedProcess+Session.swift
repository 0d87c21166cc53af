// The session of a process: how it begins and ends, and the wake-ups that arrive meanwhile.
import SimulatedRedis

@testable import Hiredis
@testable import RedisDC

extension SimulatedProcess {
    // MARK: The session

    func subscribe(_ life: SessionLife) {
        unsubscribe()
        subscription += 1
        let subscription = subscription
        let isNeeded = { subscription == self.subscription }
        world.after(world.random.time(100...3000), .step(self, -3), isNeeded: isNeeded) { world in
            guard !self.isDead, subscription == self.subscription else { return }
            if world.plan.faults.isUnreachable(self, at: world.now) {
                return self.run { if subscription == $0.subscription { $0.subscriptionFailed(life) } }
            }
            let client = world.servers.connect()
            world.servers.subscribe(client, to: world.keys.wakeUpChannel(of: life.id))
            _ = world.servers.takeDeliveries()
            self.channel = client
            world.after(world.random.time(50...2000), .step(self, -3), isNeeded: isNeeded) { _ in
                guard subscription == self.subscription else { return }
                self.run { process in process.subscribed(life) }
            }
        }
    }

    func subscribed(_ life: SessionLife) {
        switch machine.subscriptionChanged(life.id, isSubscribed: true, now: now) {
        case .none: break
        case .join(let life): join(life)
        case .send(let request): send(request)
        }
    }

    /// Lets the connection for wake-ups break: messages that are under way are lost.
    func loseChannel() {
        mail?.client.channels.breakOff()
        guard channel != nil else { return }
        let life = machine.life
        unsubscribe()
        run { $0.subscriptionFailed(life) }
    }

    func subscriptionFailed(_ life: SessionLife) {
        // Another session has begun, with a subscription of its own.
        guard life.id == machine.life.id else { return }
        switch machine.subscriptionChanged(life.id, isSubscribed: false, now: now) {
        case .none: break
        case .join(let life): join(life)
        case .send(let request): send(request)
        }
        recheckCohorts()
        subscription += 1
        let subscription = subscription
        world.after(
            world.random.time(50_000...1_000_000), .timer(self), isNeeded: { subscription == self.subscription }
        ) { _ in
            // A process that was stopped may have begun another subscription before it comes to this.
            self.run { if subscription == $0.subscription { $0.subscribe(life) } }
        }
    }

    func unsubscribe() {
        subscription += 1
        if let channel { world.servers.disconnect(channel) }
        channel = nil
    }

    /// Takes a message from the server, which arrives later.
    func deliver(_ reply: Reply) {
        guard let text = reply.elements?.last?.bytes?.text, !losesWakeUp(text) else { return }
        deliver(text)
    }

    func deliver(_ text: String) {
        let (subscription, life) = (subscription, machine.life)
        let arrival = max(lastWakeUp, world.now + world.random.time(50...5000))
        lastWakeUp = arrival
        let lane = Lane(kind: .message, process: number, number: subscription)
        world.agenda.add(
            at: arrival, lane, content: world.content(of: text), isNeeded: { subscription == self.subscription }
        ) { _ in
            guard subscription == self.subscription else { return }
            self.run { process in
                process.perform(process.machine.wakeUpReceived(life.id, text, now: process.now))
            }
        }
    }

    func join(_ life: SessionLife) {
        let arguments = Join.arguments(
            life.id, epoch: "e\(number)x\(world.random.next())", layout: world.namespace.layout, about: name,
            machine: machine)
        link.send(Scripts.join, world.keys.all, arguments, timeout: machine.settings.heartbeatInterval) { result in
            self.joinAnswered(life, result)
        }
    }

    func joinAnswered(_ life: SessionLife, _ result: Result<RESPValue, RedisError>) {
        switch result {
        case .success(let reply):
            switch Join.Reply(reply) {
            case .joined(let epoch, let next, let lastMayHaveExpired):
                let actions = machine.joined(
                    life.id, epoch: epoch, next: next, lastMayHaveExpired: lastMayHaveExpired, now: now)
                for action in actions {
                    switch action {
                    case .event(let event): observe(event)
                    case .send(let request): send(request)
                    }
                }
            case .lost: perform(machine.joinedTooLate(life.id))
            case .conflict, nil: world.violation("join has the reply \(reply)")
            }
        case .failure(let error):
            let failure = Machine.Failure(error, keys: world.keys)
            guard case .joinAgain(let life, let pause, let failing) = machine.joinFailed(life.id, failure, now: now)
            else { return }
            for (id, error) in failing { finish(id, .failure(error)) }
            world.after(pause.microseconds, .timer(self)) { _ in self.run { $0.join(life) } }
        }
    }

    private func recheckCohorts() {
        for claim in machine.claims.values { claim.request.cohort?.recall(.unknown) }
    }

    // MARK: The end

    /// Ends all operations, releases what the process has, and ends its session.
    func leave() {
        guard !isLeaving, !isDead else { return }
        isLeaving = true
        world.note("\(name) leaves")
        let (session, wasLive) = (machine.life.id, machine.isLive)
        for action in machine.stop() {
            switch action {
            case .finish(let id, let result): finish(id, result)
            case .lose(let claim, let error): lose(claim, error)
            }
        }
        ends()
        link.passOn()
        world.executor.drain()
        doubtConsumed()
        unsubscribe()
        guard wasLive else { return die() }
        sendLast(machine.shutdownRequests()[...], session)
    }

    /// Sends the requests of a shutdown step by step, and then ends the session.
    private func sendLast(_ steps: ArraySlice<[EngineRequest]>, _ session: String) {
        guard let step = steps.first else { return endSession(session) }
        var (left, isAnswered) = (step.count, true)
        for request in step {
            sendLast(request, again: true) { hasReply in
                (left, isAnswered) = (left - 1, isAnswered && hasReply)
                if left == 0 { self.sendLast(isAnswered ? steps.dropFirst() : [], session) }
            }
        }
    }

    private func sendLast(_ request: EngineRequest, again: Bool, _ done: @escaping (Bool) -> Void) {
        link.send(
            request.script, world.keys.keys(of: request), request.arguments, timeout: .seconds(2),
            name: "\(name): last \(type(of: request.operation))"
        ) { result in
            // The first reply may name another family, whose script must run.
            if again, case .success(let reply) = result,
                case .family(let family)? = EngineReply(reply, to: request.operation)
            {
                var request = request
                request.family = family
                return self.sendLast(request, again: false, done)
            }
            if case .success = result { done(true) } else { done(false) }
        }
    }

    private func endSession(_ session: String) {
        link.send(Scripts.leave, world.keys.all, [.string(session)], timeout: .seconds(2)) { result in
            if case .success = result { self.world.family(LivenessJudge.self).hasLeft(session) }
            if case .success(let reply) = result, reply.array?.first?.string == "more" {
                return self.endSession(session)
            }
            self.die()
        }
    }
}
