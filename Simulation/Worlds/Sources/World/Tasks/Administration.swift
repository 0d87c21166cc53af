// Semaphores that are created, resized, destroyed, leased, consumed and signalled at the same time.
@testable import RedisDC

extension SimulatedTask {
    func useAdministration() async throws {
        if isOne(in: 3) { return try await resizeOnly() }
        let permits = isOne(in: 5) ? 3 : 2
        let resource = Resource(name: "managed \(resourceNumber)", kind: .semaphore, permits: permits)
        switch number(0...11) {
        case 0: _ = try await call(Create(resource))
        case 1: _ = try await call(Resize(resource, permits: number(0...4)))
        case 2: _ = try await call(Destroy(resource))
        case 3, 4: _ = try await call(Signal(resource, count: number(1...2)))
        case 5, 6: _ = try await acquire(Acquire(resource: resource, count: number(1...2)), timeout: timeout)
        case 7: _ = try await acquire(Acquire(resource: resource.existing), timeout: timeout)
        default:
            let request = Acquire(resource: resource, count: number(1...2), mode: .lease, isPreferred: isOne(in: 4))
            guard let grant = try await acquire(request, timeout: timeout).grant else { return }
            try await pause(100...world.plan.hold)
            let _: Finish = try await world.executor.result { process.release(grant.claim, $0) }
        }
    }

    /// Resizes a semaphore of which the size is known, if no resize was under way with the last one.
    private func resizeOnly() async throws {
        let resource = Resource(name: "sized \(resourceNumber)", kind: .semaphore, permits: 2)
        let judge = world.family(SizeJudge.self)
        if isOne(in: 3) {
            return try await lease(
                Acquire(resource: resource, mode: .lease), Judge.Room(name: resource.name, capacity: 8),
                timeout: timeout)
        }
        let permits = number(1...8)
        let resize = judge.begins(resource.name, permits)
        let result = try await call(Resize(resource, permits: permits))
        world.note("\(process.name) has resized \(resource.name) to \(permits): \(result)")
        if result.answer != nil { judge.ends(resize) } else if !result.isUnknown { judge.fails(resize) }
    }
}

/// Knows which sizes a semaphore may have.
private final class SizeJudge: FamilyJudge {
    private struct Resize {
        var name: String
        var permits: Int
        var begin: Time
        var end: Time?
    }

    private unowned let world: World
    private var resizes: [Int: Resize] = [:]
    private var last = 0

    init(_ world: World) { self.world = world }

    func begins(_ name: String, _ permits: Int) -> Int {
        last += 1
        resizes[last] = Resize(name: name, permits: permits, begin: world.now)
        return last
    }

    func ends(_ resize: Int) { resizes[resize]!.end = world.now }

    func fails(_ resize: Int) { resizes[resize] = nil }

    /// The last resize wins: one that was over before another one began does not.
    func checkEnd(_ ledger: Ledger) {
        if world.judge.hasUnknownLoss { return }
        for (name, resource) in ledger.resources where name.hasPrefix("sized") {
            let all = resizes.values.filter { $0.name == name }
            guard let lastBegin = all.filter({ $0.end != nil }).map(\.begin).max() else { continue }
            let possible = all.filter { $0.end ?? .max >= lastBegin }.map(\.permits)
            world.check(
                possible.contains(resource.limit) || possible.isEmpty,
                "\(name) has \(resource.limit) permits, not \(possible)")
        }
    }
}
