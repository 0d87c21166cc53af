// Tasks that serve clients who are present, and those that follow who is.
@testable import CoordinationBase
@testable import GameServices

/// A client that connects, puts an object, and leaves.
///
/// `@unchecked`: a world is used by one thread.
final class GuestTask: @unchecked Sendable {
    private let services: ServiceProcess
    private var owner: MailProcess { services.owner }
    private var bucket: PresenceBucket { services.bucket }
    private unowned let world: World
    private let judge: GuestJudge
    private let name: String
    private var lastValue = 0

    init(_ services: ServiceProcess, _ number: Int) {
        (self.services, world) = (services, services.world)
        judge = services.world.family(GuestJudge.self)
        name = "guest \(services.owner.process.number).\(number)"
    }

    func run() async {
        judge.guests[owner.process.number, default: 0] += 1
        while world.isOpen, !owner.client.isOver {
            await owner.pause(100...1_000_000)
            await visit()
        }
        judge.guests[owner.process.number]! -= 1
    }

    /// Is present for a while.
    private func visit() async {
        var guest: PresenceOwner?
        while guest == nil, world.isOpen, !owner.client.isOver {
            guest = await attempt(changes: false) { try await bucket.connect(user: "user \(name)", client: name) }
        }
        guard let guest else { return }
        judge.returns(name)
        for _ in 0..<Int.random(in: 1...6, using: &world.random) where !owner.client.isOver {
            await owner.pause(100...1_500_000)
            switch Int.random(in: 0..<6, using: &world.random) {
            case 0...1: await put(guest)
            case 2: await update()
            case 3: await remove(guest)
            default: await read(guest)
            }
        }
        judge.leaves(name)
        while !owner.client.isOver {
            guard let hasLeft = await attempt(changes: true, { try await bucket.disconnect(guest) }) else { continue }
            if !hasLeft { judge.isUnknown(name) }
            break
        }
        if world.random.isOne(in: 2) { await read(nil) }
    }

    private func put(_ guest: PresenceOwner) async {
        lastValue += 1
        let value = "\(name)-\(lastValue)"
        judge.tries(name, value)
        let (losses, grace) = (world.judge.losses, Time(world.random.isOne(in: 2) ? 0 : 2_000_000))
        let version = await attempt(changes: true) {
            try await bucket.put(name, value, owner: guest, grace: .microseconds(grace))
        }
        if let version { judge.has(name, value, version: version, grace: grace, losses: losses) }
    }

    private func update() async {
        lastValue += 1
        let value = "\(name)-\(lastValue)"
        judge.tries(name, value)
        let (losses, expected) = (world.judge.losses, judge.version(of: name))
        let version = await attempt(changes: true) {
            try await bucket.update(name, Array(value.utf8), version: expected)
        }
        if let version { judge.has(name, value, version: version, losses: losses) }
    }

    private func remove(_ guest: PresenceOwner) async {
        let losses = world.judge.losses
        if await attempt(changes: true, { try await bucket.remove(name, owner: guest) }) != nil {
            judge.isGone(name, losses: losses)
        }
    }

    private func read(_ guest: PresenceOwner?) async {
        let (begun, losses) = (world.now, world.judge.losses)
        do throws(GameServiceError) {
            let found = try await bucket.object(name)
            let isOwned =
                if let guest { try await bucket.presence.core(bucket).owners[guest.token] != nil } else { false }
            judge.sees(found, name, owner, isOwned: isOwned, since: begun, losses: losses)
        } catch { world.note("\(owner.process.name) cannot read \(name): \(error)") }
    }

    /// Returns the result of an operation, or `nil` if it fails.
    ///
    /// - Parameter changes: whether it may change the client's object.
    private func attempt<Result>(
        changes: Bool, _ operation: () async throws -> Result
    ) async -> Result? {
        do { return try await operation() } catch {
            guard let error = error as? GameServiceError else { return nil }
            world.note("\(owner.process.name), \(name): \(error)")
            if changes, error.mayHaveRun { judge.isUnknown(name) }
            if error.code == .lost || error.code == .superseded { judge.isLost(name, owner) }
            await owner.pause(1000...300_000)
            return nil
        }
    }
}

/// Follows the changes of the bucket: what it has must be what the bucket has.
///
/// `@unchecked`: a world is used by one thread.
final class Follower: @unchecked Sendable {
    private let services: ServiceProcess
    private var owner: MailProcess { services.owner }
    private unowned let world: World
    private let judge: GuestJudge
    private var objects: [String: PresenceObject]?
    private var position: PresencePosition?
    private var version = 0

    init(_ services: ServiceProcess) {
        (self.services, world) = (services, services.world)
        judge = services.world.family(GuestJudge.self)
    }

    func begin() {
        owner.keep(owner.mail.executor.begin { await self.follow() })
        owner.begin {
            // At the end nobody is present, and every follower knows it.
            var emptySince: Time?
            while !self.owner.client.isOver, self.world.isOpen || !self.judge.isEmpty || self.objects?.isEmpty != true {
                await self.owner.pause(10_000...500_000)
                guard !self.world.isOpen, self.judge.isEmpty, self.world.isCalm(for: 30_000_000) else { continue }
                emptySince = emptySince ?? self.world.now
                if self.world.now > emptySince! + 30_000_000, self.objects?.isEmpty != true {
                    self.world.violation("\(self.objects as Any) are present, and everybody has left")
                }
            }
        }
    }

    private func follow() async {
        while !owner.client.isOver, !Task.isCancelled {
            do throws(GameServiceError) {
                var changes = services.bucket.changes().makeAsyncIterator()
                objects = nil
                while let event = try await changes.next() { receive(event) }
            } catch {
                world.note("\(owner.process.name) cannot follow: \(error)")
                await owner.pause(1000...100_000)
            }
        }
    }

    private func receive(_ event: PresenceEvent) {
        world.judge { $0.hasChecked() }
        switch event {
        case .gap: objects = nil
        case .snapshot(let snapshot):
            objects = Dictionary(snapshot.objects.map { ($0.key, $0) }) { first, _ in first }
            version = snapshot.position.version
        case .change(let change):
            guard objects != nil else { return world.violation("\(change) follows a gap") }
            world.check(change.version == version + 1, "\(change) follows version \(version)")
            version = change.version
            switch change.kind {
            case .put(let object, let isNew):
                world.check(
                    isNew == (objects![object.key] == nil), "\(change), and it was \(objects![object.key] as Any)")
                world.check(objects![object.key]?.text != object.text, "\(change) is there twice")
                world.check(judge.wasTried(object), "nobody has put \(object.key) as \(object.text)")
                objects![object.key] = object
            case .left(let leave):
                let known = objects!.removeValue(forKey: leave.key)
                world.check(known?.client == leave.client && known?.user == leave.user, "\(leave) was \(known as Any)")
            }
        }
    }
}
