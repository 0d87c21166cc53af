// The operations on the number of permits: of semaphores, conditions, turnstiles and buffers.
import Hiredis

/// Adds permits.
struct Signal: EngineOperation {
    typealias Value = Void

    let target: Resource
    let count: Int

    init(_ target: Resource, count: Int) { (self.target, self.count) = (target, count) }

    var name: String { target.name }
    var describedResource: Resource? { target }
    var once: Once { .slot }
    var remedy: Remedy { .again }

    func isEqual(to other: any EngineOperation) -> Bool {
        guard let other = other as? Signal else { return false }
        return count == other.count && target == other.target
    }

    var arguments: [RedisArgument] { target.arguments + (count == 1 ? [] : [.integer(count)]) }

    func script(_ family: Family?) -> RedisScript { family == .groups ? Scripts.signalGroups : Scripts.signal }
}

/// Creates a resource.
struct Create: EngineOperation {
    /// Whether there was none.
    typealias Value = Bool

    let target: Resource

    init(_ target: Resource) { self.target = target }

    var name: String { target.name }
    var describedResource: Resource? { target }
    var once: Once { .slot }
    var remedy: Remedy { .again }
    var arguments: [RedisArgument] { target.arguments }

    func script(_ family: Family?) -> RedisScript { family == .groups ? Scripts.createForGroups : Scripts.create }
}

/// Changes the total number of permits.
struct Resize: EngineOperation {
    typealias Value = Void

    let target: Resource
    let permits: Int

    init(_ target: Resource, permits: Int) { (self.target, self.permits) = (target, permits) }

    var name: String { target.name }
    var describedResource: Resource? { target }
    var once: Once { .slot }
    var remedy: Remedy { .again }
    var arguments: [RedisArgument] { target.existing.arguments + [.integer(permits)] }

    func script(_ family: Family?) -> RedisScript { family == .groups ? Scripts.resizeForGroups : Scripts.resize }
}

extension Scripts {
    static let signal = RedisScript(embedded: PackageResources.signal_lua)
    static let create = RedisScript(embedded: PackageResources.create_lua)
    static let resize = RedisScript(embedded: PackageResources.resize_lua)
    // For mutexes and semaphores with a light switch.
    static let signalGroups = RedisScript(embedded: PackageResources.signal_groups_lua)
    static let createForGroups = RedisScript(embedded: PackageResources.create_for_groups_lua)
    static let resizeForGroups = RedisScript(embedded: PackageResources.resize_for_groups_lua)
}
