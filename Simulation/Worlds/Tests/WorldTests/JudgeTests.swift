import Testing

@testable import World

@Suite("Judges")
struct JudgeTests {
    /// Holders of a room of three permits, and whether the server has their leases.
    private final class Room {
        let world = World(seed: 1, plan: World.Plan(seed: 1))
        private let process: SimulatedProcess
        var stored: Set<UInt64> = []

        init() { process = SimulatedProcess(number: 0, in: world, ttl: .seconds(2)) }

        func enter(_ fence: UInt64, size: Int = 1) -> Int {
            stored.insert(fence)
            var number = 0
            world.judge {
                number = $0.enter(
                    Judge.Room(name: "pool", size: size, capacity: 3), fence: fence, process, holds: { true },
                    isStored: { self.stored.contains(fence) })
            }
            return number
        }

        func leave(_ number: Int, isToldOfLoss: Bool = false) {
            world.judge { $0.leave(number, isToldOfLoss: isToldOfLoss) }
        }

        func loseData(_ fence: UInt64) {
            world.judge { $0.dataLost() }
            stored.remove(fence)
        }
    }

    @Test("want those to be told of a loss whose leases the server does not have, and nobody else")
    func told() {
        let room = Room()
        let (kept, lost) = (room.enter(1), room.enter(2, size: 2))
        room.loseData(2)
        let new = room.enter(3, size: 2)
        for holder in [kept, new] { room.leave(holder) }
        #expect(room.world.violations == [])
        room.leave(lost)
        #expect(room.world.violations.count == 1)
    }

    @Test("find too many holders, whether or not data was lost before", arguments: [false, true])
    func tooMany(isAfterLoss: Bool) {
        let room = Room()
        if isAfterLoss { room.loseData(0) }
        _ = room.enter(1, size: 2)
        #expect(room.world.violations == [])
        _ = room.enter(2, size: 2)
        #expect(room.world.violations.count == 1)
    }

    /// A judge of a buffer, and the number of broken promises.
    private final class Buffer {
        private let world = World(seed: 1, plan: World.Plan(seed: 1))
        private(set) lazy var judge = BufferJudge(world)
        var violations: Int { world.violations.count }
    }

    @Test("allow that the put that was new is confirmed after another one has learned of it")
    func lateConfirmation() {
        let buffer = Buffer()
        let (first, second) = (buffer.judge.begins("id 1", "buffer 0"), buffer.judge.begins("id 1", "buffer 0"))
        buffer.judge.isKnown(second)
        buffer.judge.hasPut(first)
        #expect(buffer.violations == 0)
    }

    @Test("find a put with an id that puts again")
    func secondPut() {
        let buffer = Buffer()
        let (first, second) = (buffer.judge.begins("id 1", "buffer 0"), buffer.judge.begins("id 1", "buffer 0"))
        buffer.judge.hasPut(first)
        buffer.judge.hasPut(second)
        #expect(buffer.violations == 1)
    }
}
