// Barriers, double barriers and exchangers: a generation lets through as many living parties as it should, each once.
@testable import RedisDC

extension SimulatedTask {
    /// Arrives at a barrier, phaser or exchanger. A party must wait, and knows its place when it has passed.
    func arrive(
        _ request: Acquire, parties: Int?, timeout: Duration?, isCancelled: Bool? = nil
    ) async throws -> (Arrival, Grant)? {
        let judge = world.family(MeetingJudge.self)
        let call = judge.begins(request.name, process)
        let operation = parties.flatMap { recordCall("arrive", request.name, parties: $0) }
        let result = try await acquire(
            request, timeout: timeout.map { max($0, .milliseconds(1)) }, isCancelled: isCancelled)
        judge.ends(call, result)
        // The end of a refused arrival goes on after its error.
        recordEnd(operation, result.grant == nil ? "unknown" : "ok", result.grant.map { Arrival($0) })
        guard let grant = result.grant else { return nil }
        let arrival = Arrival(grant)
        judge.passes(request.name, parties: parties, arrival)
        return (arrival, grant)
    }

    func useBarrier() async throws {
        let number = resourceNumber
        let parties = 2 + number
        if isOne(in: 2) { return try await useFragileBarrier(parties) }
        let barrier = Resource(name: "barrier \(number)", kind: .barrier, permits: parties, policy: "o")
        _ = try await arrive(Acquire(resource: barrier, action: .arrive), parties: parties, timeout: longTimeout)
    }

    /// A barrier that breaks when a party leaves. Then the next one is used.
    private func useFragileBarrier(_ parties: Int) async throws {
        let judge = world.family(MeetingJudge.self)
        let name = "fragile \(parties) \(min(judge.broken.count, 20))"
        let barrier = Resource(name: name, kind: .barrier, permits: parties, policy: "b")
        let call = judge.begins(name, process)
        let wasBroken = judge.broken.contains(name)
        let result = try await acquire(Acquire(resource: barrier, action: .arrive), timeout: longTimeout)
        judge.ends(call, result)
        if let grant = result.grant {
            judge.passes(name, parties: parties, Arrival(grant))
            world.check(!wasBroken || world.judge.losses > 0, "\(name) has opened, and was broken before")
        } else if result.error?.code == .broken {
            judge.broken.insert(name)
        }
    }

    // MARK: Double barriers

    func useDoubleBarrier() async throws {
        let judge = world.family(DoubleBarrierJudge.self)
        guard judge.mayBegin(process) else { return }
        judge.running.insert(process.number)
        defer { judge.running.remove(process.number) }
        try await pause(100...4000)
        let ledger = Ledger(world.servers.master, world.keys)
        let round = ledger.resources["double#entrance"]?.signalled ?? 0
        let exit = Resource(name: "double#exit\(round % 2)", kind: .phaser, permits: 0)
        let party = Acquire(resource: exit, action: .register, mode: .lease)
        guard let lease = try await acquire(party, timeout: nil, isCancelled: false).grant else { return }
        let entrance = Resource(name: "double#entrance", kind: .barrier, permits: 2, policy: "o")
        let arrival = Acquire(resource: entrance, action: .arrive)
        if let (arrival, _) = try await arrive(arrival, parties: 2, timeout: longTimeout) {
            judge.enters(arrival.generation, lease.claim, process)
            try await pause(100...world.plan.hold)
            judge.finishes(arrival.generation, process)
            let leaving = Acquire.arrivalOfParty(at: exit)
            if process.holds(lease.claim),
                try await arrive(leaving, parties: nil, timeout: .seconds(20), isCancelled: false) != nil
            {
                judge.exits(arrival.generation)
            }
        }
        let _: Finish = try await world.executor.result { process.release(lease.claim, $0) }
    }

    // MARK: Exchangers

    func useExchanger() async throws {
        let number = resourceNumber
        let (name, parties) = ("exchanger \(number)", 2 + number)
        let judge = world.family(ExchangeJudge.self)
        let value = judge.nextValue(name)
        let request = Acquire(
            resource: Resource(name: name, kind: .exchanger, permits: parties, policy: "o"), action: .arrive,
            mode: .lease, failsOnLoss: true, detail: .brings(Array(value.utf8)))
        guard let (arrival, grant) = try await arrive(request, parties: parties, timeout: longTimeout) else { return }
        try await pause(100...world.plan.hold)
        var values: [String] = []
        var first = 0
        repeat {
            let result = try await use(grant.claim) { ReadValues(held: $0, first: first) }
            guard case .values(let page, let next)? = result.answer else {
                let isKept = !process.holds(grant.claim) || result.isUnknown || world.mayLoseData
                world.check(isKept, "\(process.name) cannot read the values of \(name): \(result)")
                break
            }
            values += page.map { String(decoding: $0, as: UTF8.self) }
            first = next
        } while first > 0
        process.releaseSoon(grant.claim)
        if !values.isEmpty { judge.meets(name, parties, arrival, own: value, values) }
    }
}

/// Checks who passes barriers, phasers and exchangers.
final class MeetingJudge: FamilyJudge {
    struct Call {
        var name: String
        var process: SimulatedProcess
        var sessionEnds: Int
    }

    private unowned let world: World
    private var passed: [String: [UInt64: [Int]]] = [:]
    private var parties: [String: Int] = [:]
    private var calls: [Int: Call] = [:]
    private var lastCall = 0
    /// Arrivals that may have counted although no task has passed.
    private var uncertain: [String: Int] = [:]
    /// The names of broken barriers.
    var broken: Set<String> = []

    init(_ world: World) { self.world = world }

    func begins(_ name: String, _ process: SimulatedProcess) -> Int {
        lastCall += 1
        calls[lastCall] = Call(name: name, process: process, sessionEnds: process.sessionEnds)
        return lastCall
    }

    func ends(_ number: Int, _ result: SimulatedTask.Finish) {
        guard let call = calls.removeValue(forKey: number) else { return }
        uncertain[call.name, default: 0] += call.process.sessionEnds - call.sessionEnds
        // A process that leaves does not wait for the answer.
        if result.isUnknown || call.process.isLeaving { uncertain[call.name, default: 0] += 1 }
    }

    func passes(_ name: String, parties: Int?, _ arrival: Arrival) {
        if world.judge.losses > 0 { return }
        if let parties { self.parties[name] = parties }
        passed[name, default: [:]][arrival.generation, default: []].append(arrival.index)
        let indices = passed[name]![arrival.generation]!
        // A phaser without parties is deleted, and its generations begin again.
        guard let parties else { return }
        world.check(
            indices.count <= parties && Set(indices).count == indices.count && arrival.index < parties,
            "\(name): generation \(arrival.generation) was passed by \(indices) of \(parties) parties")
    }

    /// Each place in a generation belongs to a task that has passed, or to one that does not know.
    func checkEnd(_ ledger: Ledger) {
        if world.judge.losses > 0 { return }
        for call in calls.values {
            uncertain[call.name, default: 0] += call.process.sessionEnds - call.sessionEnds + 1
        }
        for (name, parties) in parties.sorted(by: { $0.key < $1.key }) {
            guard let resource = ledger.resources[name], "be".contains(resource.kind) else { continue }
            let places = resource.signalled * parties
            let known = passed[name]?.values.reduce(0) { $0 + $1.count } ?? 0
            world.check(
                places - known <= uncertain[name] ?? 0,
                "\(name) has opened \(resource.signalled) times for \(parties) parties: \(known) have passed, and "
                    + "\(uncertain[name] ?? 0) may have")
        }
    }
}

/// Checks that the parties of a double barrier finish together.
private final class DoubleBarrierJudge: FamilyJudge {
    private struct Party {
        var process: SimulatedProcess
        /// Its claim at the exit.
        var claim: UInt64
        var hasFinished = false
    }

    private unowned let world: World
    /// The parties inside, by the generation of the entrance and the process.
    private var inside: [UInt64: [Int: Party]] = [:]
    private var left: Set<UInt64> = []
    /// The processes that are parties now.
    var running: Set<Int> = []

    init(_ world: World) { self.world = world }

    /// Whether a process may be one more party. There must never be more parties than the barrier has.
    func mayBegin(_ process: SimulatedProcess) -> Bool {
        var others = running
        for (id, claim) in Ledger(world.servers.master, world.keys).claims where claim.name.hasPrefix("double#") {
            others.insert(Int(id.dropFirst().prefix { $0 != "s" }) ?? -1)
        }
        return others.count < 2 && !others.contains(process.number)
    }

    func enters(_ generation: UInt64, _ claim: UInt64, _ process: SimulatedProcess) {
        if process.holds(claim), !world.mayLoseData {
            world.check(!left.contains(generation), "a party has left a double barrier before all have entered")
        }
        inside[generation, default: [:]][process.number] = Party(process: process, claim: claim)
    }

    func finishes(_ generation: UInt64, _ process: SimulatedProcess) {
        inside[generation]?[process.number]?.hasFinished = true
    }

    func exits(_ generation: UInt64) {
        left.insert(generation)
        if world.mayLoseData { return }
        for party in inside[generation, default: [:]].values {
            world.check(
                party.hasFinished || party.process.isDead || !party.process.holds(party.claim),
                "a party has left a double barrier before \(party.process.name) has finished")
        }
    }

    func checkEnd(_ ledger: Ledger) {}
}

/// Checks what the parties of an exchanger receive.
private final class ExchangeJudge: FamilyJudge {
    private unowned let world: World
    private var met: [String: [UInt64: [String]]] = [:]
    private var lastValue = 0

    init(_ world: World) { self.world = world }

    func nextValue(_ name: String) -> String {
        lastValue += 1
        return "\(name), value \(lastValue)"
    }

    func meets(_ name: String, _ parties: Int, _ arrival: Arrival, own: String, _ values: [String]) {
        if world.judge.losses > 0 { return }
        let all = met[name]?[arrival.generation] ?? values
        met[name, default: [:]][arrival.generation] = all
        // A party that died before its grant leaves no value.
        let isMeeting = values == all && values.contains(own) && Set(values).count == values.count
        world.check(
            isMeeting && values.count <= parties, "\(own) met \(values) in generation \(arrival.generation) of \(all)")
    }

    func checkEnd(_ ledger: Ledger) {
        let values = met.values.flatMap { $0.values.flatMap { $0 } }
        world.check(Set(values).count == values.count, "a value was in two meetings")
    }
}
