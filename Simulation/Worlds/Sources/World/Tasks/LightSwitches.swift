// Light switches: the members of a group are inside together, and nobody else.
@testable import RedisDC

extension SimulatedTask {
    /// Enters a mutex, or one of two permits, with a group or alone.
    func useLightSwitch() async throws {
        let number = resourceNumber
        let permits = 1 + number
        let resource =
            number == 0
            ? Resource(name: "room", kind: .mutex, permits: 1)
            : Resource(name: "hall \(number)", kind: .semaphore, permits: permits)
        var room = Judge.Room(name: resource.name, capacity: permits)
        if isOne(in: 3) {
            return try await lease(Acquire(resource: resource, mode: .lease), room, timeout: timeout)
        }
        let group = ["a", "b"].randomElement(using: &world.random)!
        room.group = group
        try await lease(Acquire(resource: resource, mode: .group, detail: .group(group)), room, timeout: timeout)
    }
}
