// One path of an exploration: the choices that it repeats, those that it makes, and the states that it meets.
@testable import Hiredis
@testable import RedisDC

/// What decides the order of the events of a world, in place of time and chance.
///
/// Packets take no time. One of the packets under way and of the tasks that can go on is next, and which one is a choice.
/// Time passes only when nothing else can happen: then the first timer fires. Faults, and timers that fire before packets
/// that are under way, are further choices, as long as the ``Budget`` allows them.
public final class Exploration {
    /// A choice that was made.
    struct Taken {
        /// Which of the options it was.
        var index: Int
        /// The number of options.
        var count: Int
    }

    /// What happens next.
    enum Option {
        case event(Agenda.Entry)
        case end
        case breakOff(Int)
        case loseChannel(Int)
        case death(Int)
        case cancel(process: Int, task: Int, call: UInt64)
        case promotion(lag: Int)
    }

    let prefix: [Int]
    var budget: Budget
    /// Whether a state was visited; called for each new one.
    private let isVisited: (Int) -> Bool
    private(set) var taken: [Taken] = []
    /// The state at the end of the path, unless it has ended early.
    private(set) var end: Int?
    /// Whether the path has led to a state that was visited before.
    private(set) var isRepeated = false
    /// Whether the path differs from the one whose choices it repeats.
    private(set) var hasDiverged = false
    /// Checksums of all that each process has received, in its order. They decide the state of a process and its tasks.
    private var histories: [Int]
    /// The last wait of each task of each process.
    var waits: [Int: [Int: UInt64]] = [:]
    /// A checksum of what mailboxes have executed.
    var mailHistory = 0
    /// The generators of random numbers of the processes, and one for what belongs to none.
    private var generators: [Random]
    private var libraryGenerators: [Random]

    init(prefix: [Int], processes: Int, budget: Budget, isVisited: @escaping (Int) -> Bool) {
        (self.prefix, self.budget, self.isVisited) = (prefix, budget, isVisited)
        histories = Array(repeating: 0, count: processes)
        generators = (0...processes).map { Random(seed: UInt64($0), isFixed: true) }
        libraryGenerators = (0...processes).map { Random(seed: UInt64(1000 + $0)) }
    }

    // MARK: Choices

    /// Chooses one of the options, or `nil` if the state was visited before.
    func choose(_ options: [Option], in world: World) -> Option? {
        if options.count == 1 { return options[0] }
        let depth = taken.count
        var index = 0
        if depth < prefix.count {
            index = prefix[depth]
            if index >= options.count {
                hasDiverged = true
                return nil
            }
        } else if isVisited(fingerprint(of: world)) {
            isRepeated = true
            return nil
        }
        taken.append(Taken(index: index, count: options.count))
        return options[index]
    }

    /// The options at this point, the most usual one first.
    func options(in world: World) -> [Option] {
        let entries = pending(in: world)
        var lanes: Set<Lane> = []
        let heads = entries.filter { $0.lane.kind != .timer && lanes.insert($0.lane).inserted }
        let late = heads.filter { isLate($0, world) }
        let fresh = heads.filter { !isLate($0, world) }
        if fresh.isEmpty, world.hasEnded { return [.end] + late.map(Option.event) }
        let timer = entries.filter { $0.lane.kind == .timer }
            .min { ($0.at, $0.lane.process, $0.number) < ($1.at, $1.lane.process, $1.number) }
        var options: [Option] = []
        if fresh.isEmpty {
            options = (timer.map { [.event($0)] } ?? []) + late.map(Option.event)
        } else {
            options = (fresh + late).map(Option.event)
            if let timer, budget.timers > 0 { options.append(.event(timer)) }
        }
        return options.isEmpty ? [] : options + faults(in: world)
    }

    /// The events that will happen, but for those of dead processes.
    func pending(in world: World) -> [Agenda.Entry] {
        world.agenda.needed().filter { entry in
            entry.lane.process < 0 || entry.lane.kind == .request || !world.processes[entry.lane.process].isDead
        }
    }

    /// Whether something is a request of a connection that is broken.
    private func isLate(_ entry: Agenda.Entry, _ world: World) -> Bool {
        entry.lane.kind == .request && world.processes[entry.lane.process].link.isBroken(entry.lane.number)
    }

    private func faults(in world: World) -> [Option] {
        var options: [Option] = []
        let living = world.processes.filter { !$0.isDead }
        for process in living {
            let number = process.number
            if budget.breaks > 0, process.link.isInUse { options.append(.breakOff(number)) }
            if budget.lostChannels > 0, process.channel != nil { options.append(.loseChannel(number)) }
            if budget.deaths > 0, living.count > 1 { options.append(.death(number)) }
            guard budget.cancels > 0 else { continue }
            for (task, call) in waits[number, default: [:]].sorted(by: { $0.key < $1.key })
            where process.isUnfinished(call) {
                options.append(.cancel(process: number, task: task, call: call))
            }
        }
        if budget.promotions > 0 { options += (0...world.servers.lag).map { .promotion(lag: $0) } }
        return options
    }

    // MARK: Events

    /// Carries out an option.
    func carryOut(_ option: Option, in world: World) {
        switch option {
        case .end: break
        case .event(let entry):
            if entry.lane.kind == .timer {
                // The first timer is not the next event.
                if pending(in: world).contains(where: { $0.lane.kind != .timer && !isLate($0, world) }) {
                    budget.timers -= 1
                }
                world.now = max(world.now, entry.at)
                world.servers.advance(to: world.now)
            }
            world.agenda.remove(entry)
            if entry.lane.kind == .request { return with(entry.lane.process, in: world) { entry.event(world) } }
            receive(entry.lane, entry.content, in: world) { entry.event(world) }
        case .breakOff(let number):
            budget.breaks -= 1
            disturb(number, "its connection breaks", 1, in: world) { $0.link.breakOff() }
        case .loseChannel(let number):
            budget.lostChannels -= 1
            disturb(number, "its connection for wake-ups breaks", 2, in: world) { $0.loseChannel() }
        case .death(let number):
            budget.deaths -= 1
            disturb(number, nil, 3, in: world) { $0.die() }
        case .cancel(let number, let task, let call):
            budget.cancels -= 1
            disturb(number, "task \(task) is cancelled", 4 + task, in: world) { $0.run { $0.cancel(call) } }
        case .promotion(let lag):
            budget.promotions -= 1
            for process in world.processes { mix(Lane.step(process, -10 - lag), 0, world) }
            world.promote(lag: lag)
        }
    }

    /// A fault happens to a process.
    private func disturb(
        _ number: Int, _ text: String?, _ kind: Int, in world: World, _ fault: (SimulatedProcess) -> Void
    ) {
        let process = world.processes[number]
        if let text { world.note("\(process.name): \(text)") }
        world.faults += 1
        world.disturb(until: world.now)
        receive(.step(process, -100 - kind), 0, in: world) { fault(process) }
    }

    /// Something happens in a process, whose state depends on all that has happened in it.
    private func receive(_ lane: Lane, _ content: Int, in world: World, _ body: () -> Void) {
        if lane.process >= 0 {
            mix(lane, content, world)
        } else {
            for process in world.processes { mix(.step(process, -9), content, world) }
        }
        with(lane.process, in: world, body)
    }

    /// Something in a process happens, or because of it. It uses the random numbers of the process, so that they do not
    /// depend on the order of what processes do.
    private func with(_ process: Int, in world: World, _ body: () -> Void) {
        let index = process < 0 ? generators.count - 1 : process
        world.random = generators[index]
        if let mail = world.mail { mail.runtime.random = libraryGenerators[index] }
        body()
        world.executor.drain()
        world.mail?.goOn()
        generators[index] = world.random
        if let mail = world.mail { libraryGenerators[index] = mail.runtime.random }
    }

    /// A process reads something that another process has written.
    func reads(_ value: Bool, _ process: SimulatedProcess) {
        mix(.step(process, value ? -8 : -7), 0, process.world)
    }

    private func mix(_ lane: Lane, _ content: Int, _ world: World) {
        var fingerprint = Fingerprint()
        fingerprint.mix(histories[lane.process], lane, content, world.now)
        fingerprint.mix(world.judge.losses, world.servers.generation)
        histories[lane.process] = fingerprint.value
    }

    /// The path is over.
    func ends(in world: World) { end = fingerprint(of: world) }

    /// Begins what the tasks do.
    func begin(in world: World, _ body: (SimulatedProcess) -> Void) {
        for process in world.processes {
            process.startedAt = world.now - 4 * process.ttl
            with(process.number, in: world) { body(process) }
        }
    }

    // MARK: States

    /// A checksum of all that decides what can still happen, and what the judges will say.
    ///
    /// Processes are deterministic, and so are their tasks: the sequence of what they have received, with its times,
    /// decides their states, the requests that they have sent and their timers. The rest is the state of the server, what
    /// it has sent, and the judges.
    private func fingerprint(of world: World) -> Int {
        var fingerprint = Fingerprint()
        fingerprint.mix(world.now, budget, histories, mailHistory)
        world.servers.mix(into: &fingerprint, withReplica: budget.promotions > 0)
        let packets = pending(in: world).filter { $0.lane.kind.rawValue <= Lane.Kind.message.rawValue }
        let lanes = Dictionary(grouping: packets, by: \.lane)
        fingerprint.mixUnordered(lanes) { $0.mix($1.key, $1.value.map(\.content)) }
        world.judge.mix(into: &fingerprint)
        fingerprint.mixUnordered(world.judges) {
            $0.mix(ObjectIdentifier(type(of: $1)))
            $0.mixProperties(of: $1)
        }
        return fingerprint.value
    }
}

extension World {
    /// A checksum of what the server sends, if the order of events is explored.
    func content(of value: some Any) -> Int {
        guard exploration != nil else { return 0 }
        var fingerprint = Fingerprint()
        fingerprint.mix(String(describing: value))
        return fingerprint.value
    }

    /// Makes the replica the master, which lacks the last effects.
    fileprivate func promote(lag: Int) {
        servers.replicate(lag: lag)
        note("a replica is promoted, which lacks \(lag) of the last writes")
        faults += 1
        disturb(until: now)
        if lag > 0 { judge { $0.dataLost() } }
        servers.promote()
        mail?.promoted()
        breakAll()
    }

    /// Runs one path.
    func run(_ path: Exploration, begin: (SimulatedProcess) -> Void) {
        exploration = path
        random = Random(seed: 1, isFixed: true)
        guard let mail else { return exploreAndEnd(path, begin) }
        mail.runtime.use { exploreAndEnd(path, begin) }
    }

    private func exploreAndEnd(_ path: Exploration, _ begin: (SimulatedProcess) -> Void) {
        explore(path, begin)
        // A path may end early. Then the tasks end in the middle of what they do, which is nobody's fault.
        let violations = judge.violations
        executor.end()
        mail?.end()
        judge.violations = violations
    }

    private func explore(_ path: Exploration, _ begin: (SimulatedProcess) -> Void) {
        prepare(path)
        path.begin(in: self, begin)
        calmSince = -1_000_000_000
        var isOver = false
        while !isOver, judge.violations.isEmpty {
            if path.budget.promotions > 0 { servers.replicate(maxLag: path.budget.maxLag) }
            let options = path.options(in: self)
            guard !options.isEmpty else {
                violation("nothing can happen, and tasks wait: \(processes.flatMap(\.waits))")
                break
            }
            guard let option = path.choose(options, in: self) else { break }
            if case .end = option { isOver = true }
            path.carryOut(option, in: self)
            events += 1
            audit()
            if now > 120_000_000 { violation("tasks still run: \(processes.flatMap(\.waits).prefix(5))") }
        }
        if isOver { path.ends(in: self) }
        if isOver, judge.violations.isEmpty { checkEnd() }
    }

    /// Connects all processes, and begins their sessions.
    private func prepare(_ path: Exploration) {
        for _ in 0..<plan.processes { addProcess() }
        mail?.goOn()
        while let entry = path.pending(in: self).first(where: { $0.lane.kind != .timer }) {
            path.carryOut(.event(entry), in: self)
        }
        check(processes.allSatisfy { $0.machine.isLive }, "no session has begun")
    }
}
