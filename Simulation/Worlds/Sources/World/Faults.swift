// The faults of a world, and when they happen.
import SimulatedRedis

/// The faults of a world: how many of each kind there are in a minute, at random times.
public struct Faults: Sendable, Codable, Equatable {
    /// Connections for commands that break.
    public var breaks = 6
    /// Connections for wake-ups that break.
    public var lostChannels = 3
    /// Processes that die. Each is replaced.
    public var deaths = 2
    /// Processes that are stopped for up to three TTLs.
    public var stops = 2
    /// Processes that cannot reach the server for up to two TTLs.
    public var partitions = 2
    /// Restarts of the server that lose nothing.
    public var restarts = 1
    /// Promotions of a replica, which lacks the last writes.
    public var promotions = 0
    /// The most writes that a promoted replica lacks.
    public var longestLag = 10
    /// Steps of the server's clock, by up to one second.
    public var clockSteps = 0
    /// Connections that break before the reply to a request that was carried out: one of so many requests; 0 for none.
    public var lostReplies = 300
    /// Processes that end in an orderly way. Each is replaced.
    public var leaves = 1
    /// Wake-ups that are lost without a break of the connection: one of so many; 0 for none.
    public var lostWakeUps = 0
    /// Messages of another program on the channel of a process's wake-ups, which no script has published.
    public var strangeMessages = 0
    /// 1 if a server that has started or was promoted must be sent each script before it can run it; 0 if it knows all.
    public var unknownScripts = 0
    /// Replies that wait for a thread of their process, up to 50 ms, also when the connection has ended: one of so many; 0
    /// for none.
    public var lateReplies = 0

    /// Creates the usual faults, none of which loses data.
    public init() {}

    /// All kinds.
    static var kinds: [WritableKeyPath<Faults, Int>] {
        [
            \.breaks, \.lostChannels, \.deaths, \.stops, \.partitions, \.restarts, \.promotions, \.clockSteps,
            \.lostReplies, \.leaves, \.lostWakeUps, \.strangeMessages, \.unknownScripts, \.lateReplies,
        ]
    }

    /// Draws faults, none of which loses data.
    init(_ random: inout Random) {
        func draw(_ usual: Int) -> Int { [0, usual, usual, 3 * usual].randomElement(using: &random)! }
        (breaks, lostChannels, deaths, stops) = (draw(6), draw(3), draw(3), draw(2))
        (partitions, restarts, leaves) = (draw(2), draw(1), draw(1))
        lostReplies = [0, 300, 60].randomElement(using: &random)!
    }

    /// No faults.
    public static var none: Faults {
        var faults = Faults()
        (faults.breaks, faults.lostChannels, faults.deaths, faults.stops) = (0, 0, 0, 0)
        (faults.partitions, faults.restarts, faults.leaves, faults.lostReplies) = (0, 0, 0, 0)
        return faults
    }

    /// Only a few ends of processes, so that nothing else delays what must happen then.
    static var deaths: Faults {
        var faults = Faults.none
        (faults.deaths, faults.leaves) = (3, 3)
        return faults
    }

    func schedule(in world: World) {
        let kinds: [(Int, (World) -> Void)] = [
            (breaks, { $0.randomProcess?.link.breakOff() }), (lostChannels, { $0.randomProcess?.loseChannel() }),
            (deaths, Self.death),
            (stops, { world in world.randomProcess?.stop(for: world.random.time(1000...18_000_000)) }),
            (partitions, Self.partition), (restarts, { $0.restart() }), (promotions, { $0.promote() }),
            (clockSteps, { $0.stepClock() }), (leaves, Self.leave), (strangeMessages, Self.strangeMessage),
        ]
        for (perMinute, fault) in kinds {
            let count = (perMinute * world.plan.seconds + 59) / 60
            for _ in 0..<count {
                let at = Time.random(in: 0..<Time(world.plan.seconds) * 1_000_000, using: &world.random)
                world.agenda.add(at: at) { world in
                    world.faults += 1
                    world.disturb(until: world.now)
                    fault(world)
                }
            }
        }
    }

    func losesReply(_ random: inout Random) -> Bool { lostReplies > 0 && random.isOne(in: lostReplies) }

    private static func death(_ world: World) {
        world.randomProcess?.die()
        world.addProcess()
    }

    private static func leave(_ world: World) {
        guard let process = world.randomProcess else { return }
        process.run { $0.leave() }
        world.addProcess()
    }

    private static func strangeMessage(_ world: World) { world.randomProcess?.deliverStrangeMessage() }

    private static func partition(_ world: World) {
        guard let process = world.randomProcess else { return }
        process.unreachableUntil = world.now + world.random.time(100_000...12_000_000)
        world.disturb(until: process.unreachableUntil)
        world.note("\(process.name) is cut off")
        process.loseChannel()
    }

    func isUnreachable(_ process: SimulatedProcess, at time: Time) -> Bool { process.unreachableUntil > time }

    /// How much longer a packet takes, because it waits for the network.
    func extraDelay(of process: SimulatedProcess, at time: Time) -> Time { max(0, process.unreachableUntil - time) }
}

extension World {
    fileprivate var randomProcess: SimulatedProcess? {
        processes.filter { !$0.isDead && !$0.isLeaving }.randomElement(using: &random)
    }

    fileprivate func stepClock() {
        let step = Int64.random(in: -1_000_000...1_000_000, using: &random)
        note("the server's clock steps by \(Double(step) / 1_000_000) s")
        servers.step(by: step)
        if step > 0 { judge { $0.clockStepped(at: now) } }
    }

    fileprivate func restart() {
        note("the server restarts")
        servers.restart(losing: .nothing)
        breakAll()
    }

    fileprivate func promote() {
        servers.replicate(lag: Int.random(in: 0...plan.faults.longestLag, using: &random))
        note("a replica is promoted")
        judge { $0.dataLost() }
        lastLoss = now
        if lastEnd > servers.offset.replica { judge { $0.lossIsFinal() } }
        for process in processes where !process.isDead { process.mustRepair = true }
        record { $0.failedOver(now) }
        servers.promote()
        mail?.promoted()
        breakAll()
    }

    func breakAll() {
        for process in processes where !process.isDead {
            process.link.breakOff()
            process.loseChannel()
        }
    }
}
