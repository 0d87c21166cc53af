// Bounded buffers: an item that was put is taken once, or is still there; a put with an id puts one item.
import SimulatedRedis

@testable import RedisDC

extension SimulatedTask {
    /// Puts and takes; one buffer is destroyed now and then.
    func useBuffer() async throws {
        let isShaky = isOne(in: 4)
        let name = isShaky ? "shaky" : "buffer \(resourceNumber)"
        let places = Resource(name: name, kind: .boundedBuffer, permits: 2)
        let judge = world.family(BufferJudge.self)
        switch number(0...19) {
        case 0 where isShaky:
            let begin = judge.destroys(name)
            if try await call(Destroy(places)).answer != nil { judge.hasDestroyed(name, since: begin) }
            _ = try await call(Recheck(name: name + "#items"))
        case 0: _ = try await call(Resize(places, permits: number(1...3)))
        case 1...10: try await put(places, judge)
        default: try await take(places, judge)
        }
    }

    private func items(of places: Resource) -> Resource {
        Resource(name: places.name + "#items", kind: .bufferItems, permits: 0)
    }

    private func put(_ places: Resource, _ judge: BufferJudge) async throws {
        let id = isOne(in: 3) ? "\(places.name), id \(number(0...9))" : nil
        let item = id ?? judge.nextItem(places.name)
        let put = judge.begins(item, places.name)
        let request = Acquire(resource: places, mode: .lease, detail: id.map { .puts(id: $0) })
        let result = try await acquire(request, timeout: timeout)
        if case .known? = result.answer { return judge.isKnown(put) }
        guard let grant = result.grant else { return judge.fails(put, isUnknown: result.isUnknown) }
        if isOne(in: 3) { try await pause(100...world.plan.hold) }
        let target = items(of: places)
        let passed = try await use(grant.claim) { Pass(held: $0, target: target, item: Array(item.utf8), id: id) }
        switch passed.answer {
        case .done?: judge.hasPut(put)
        case .known?:
            judge.isKnown(put)
            process.releaseSoon(grant.claim)
        default:
            judge.fails(put, isUnknown: passed.isUnknown)
            process.releaseSoon(grant.claim)
        }
    }

    private func take(_ places: Resource, _ judge: BufferJudge) async throws {
        let request = Acquire(resource: items(of: places), mode: .lease)
        guard let grant = try await acquire(request, timeout: timeout).grant else { return }
        let read = try await use(grant.claim) { ReadValues(held: $0, first: 0) }
        guard case .values(let values, _)? = read.answer, let bytes = values.first else {
            let isKept = places.name == "shaky" || read.isUnknown || !process.holds(grant.claim) || world.mayLoseData
            world.check(isKept, "\(process.name) cannot read an item of \(places.name): \(read)")
            return process.releaseSoon(grant.claim)
        }
        let item = String(decoding: bytes, as: UTF8.self)
        judge.handles(item)
        let process = process
        var holder = 0
        // A lease of an item gets the first item when it reads, so another one with a later fence may have had it before.
        let room = Judge.Room(name: item, hasFences: false)
        // After its destruction, a buffer may have an item of the same id.
        if places.name != "shaky" {
            world.judge {
                holder = $0.enter(
                    room, fence: grant.fence, process, holds: { process.holds(grant.claim) },
                    isStored: { process.isStored(grant.claim) })
            }
        }
        try await pause(100...world.plan.hold)
        world.judge { $0.finish(holder) }
        if isOne(in: 4) {
            // The body has thrown.
            if isOne(in: 2) { try await pause(100...1_000_000) }
            let _: Finish = try await world.executor.result { process.release(grant.claim, $0) }
        } else {
            judge.mayTake(item)
            let passed = try await use(grant.claim) { Pass(held: $0, target: places.existing, item: nil, id: nil) }
            if case .done? = passed.answer { judge.hasTaken(item) } else { process.releaseSoon(grant.claim) }
        }
        world.judge { $0.leave(holder, isToldOfLoss: true) }
    }
}

/// Knows which items were put and taken.
final class BufferJudge: FamilyJudge {
    private struct Item {
        var buffer: String
        var isPut = false
        /// Whether a put of it was confirmed as a new one.
        var isConfirmed = false
        /// Since when a task knows that it was put: what it begins then puts nothing.
        var isKnownSince: Time?
        var mayBeTaken = false
        var isTaken = false
    }

    private struct Put {
        var item: String
        var begin: Time
        /// When it certainly was over; `nil` if it may still happen.
        var end: Time?
    }

    private unowned let world: World
    private var items: [String: Item] = [:]
    private var puts: [Int: Put] = [:]
    private var lastPut = 0
    private var lastItem = 0
    /// The last destruction of a buffer, if it is over, and no other one was under way with it.
    private var destroyed: [String: ClosedRange<Time>] = [:]
    private var destructions = 0

    init(_ world: World) { self.world = world }

    func nextItem(_ buffer: String) -> String {
        lastItem += 1
        return "\(buffer), item \(lastItem)"
    }

    func begins(_ item: String, _ buffer: String) -> Int {
        lastPut += 1
        if items[item] == nil { items[item] = Item(buffer: buffer) }
        puts[lastPut] = Put(item: item, begin: world.now)
        return lastPut
    }

    func hasPut(_ put: Int) {
        puts[put]!.end = world.now
        let (item, begin) = (puts[put]!.item, puts[put]!.begin)
        let isNew = !items[item]!.isConfirmed && begin <= items[item]!.isKnownSince ?? .max
        world.check(isNew || items[item]!.buffer == "shaky" || world.judge.losses > 0, "\(item) was put twice")
        (items[item]!.isPut, items[item]!.isConfirmed) = (true, true)
        items[item]!.isKnownSince = items[item]!.isKnownSince ?? world.now
    }

    /// The buffer remembers the id: then another put, or an attempt of this one, has put the item.
    func isKnown(_ number: Int) {
        let put = puts[number]!
        puts[number]!.end = world.now
        let buffer = items[put.item]!.buffer
        guard let destruction = destroyed[buffer], destruction.upperBound < put.begin, !world.mayLoseData else {
            if buffer != "shaky" { items[put.item]!.isPut = true }
            items[put.item]!.isKnownSince = items[put.item]!.isKnownSince ?? world.now
            return
        }
        let others = puts.contains {
            $0.key != number && $0.value.item == put.item && $0.value.end ?? .max > destruction.lowerBound
        }
        world.check(others, "\(put.item) is known to a new buffer")
    }

    func fails(_ put: Int, isUnknown: Bool) { if !isUnknown { puts[put]!.end = world.now } }

    func destroys(_ name: String) -> Time {
        (destroyed[name], destructions) = (nil, destructions + 1)
        return world.now
    }

    func hasDestroyed(_ name: String, since begin: Time) { destroyed[name] = begin...world.now }

    func handles(_ item: String) {
        if world.judge.losses > 0 { return }
        guard let known = items[item] else { return world.violation("\(item) was never put") }
        world.check(!known.isTaken || known.buffer == "shaky", "\(item) was taken twice")
    }

    func mayTake(_ item: String) { items[item]?.mayBeTaken = true }

    func hasTaken(_ item: String) { items[item]?.isTaken = true }

    func checkEnd(_ ledger: Ledger) {
        if world.judge.hasUnknownLoss { return }
        var server = world.servers.master
        let values = server.execute("HVALS", Bytes(world.keys.all[3])).elements?.compactMap(\.bytes?.text) ?? []
        let there = values.filter { items[$0] != nil && items[$0]!.buffer != "shaky" }
        world.check(Set(there).count == there.count, "an item is there twice: \(there)")
        for (name, item) in items where item.buffer != "shaky" {
            let isThere = there.contains(name)
            world.check(!item.isTaken || !isThere, "\(name) was taken, and is still there")
            world.check(!item.isPut || item.mayBeTaken || isThere, "\(name) was put, and is gone")
        }
    }
}
