// The operations on resources of all kinds.
import Hiredis

/// Deletes a resource. All who wait for it fail.
struct Destroy: EngineOperation {
    /// Whether there was one.
    typealias Value = Bool

    let target: Resource

    init(_ target: Resource) { self.target = target }

    var name: String { target.name }
    var describedResource: Resource? { target }
    var once: Once { .slot }
    var remedy: Remedy { .again }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] { [.string(target.letters)] }

    func script(_ family: Family?) -> RedisScript { Scripts.destroy }
}

/// Continues where an earlier script has stopped at its bound, and grants to waiters that may be overtaken.
struct Recheck: EngineOperation {
    typealias Value = Void

    let name: String

    var once: Once { .idempotent }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] { [.string(name)] }

    func script(_ family: Family?) -> RedisScript {
        switch family ?? .permits {
        case .permits, .participant, .item: Scripts.recheck
        case .groups: Scripts.recheckGroups
        case .meetings: Scripts.recheckMeeting
        case .clearing: Scripts.clear
        }
    }
}

/// Reads a page of the data of a lease: the item that it takes from a buffer, or the values that all parties of a meeting
/// have brought, without the `first` ones.
struct ReadValues: EngineOperation {
    struct Value: Sendable {
        var values: [[UInt8]]
        /// The first value of the next page; 0 after the last.
        var next: Int
    }

    let held: HeldClaim
    let first: Int

    var name: String { held.name }
    var once: Once { .claim(held.number, isEnded: false) }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] { [.string(String(held.number))] + (first == 0 ? [] : [.integer(first)]) }

    func script(_ family: Family?) -> RedisScript { Scripts.read }

    static func value(of reply: EngineReply) -> Value? {
        if case .values(let values, let next) = reply { Value(values: values, next: next) } else { nil }
    }
}

extension Scripts {
    static let destroy = RedisScript(embedded: PackageResources.destroy_lua)
    static let clear = RedisScript(embedded: PackageResources.clear_lua)
    static let recheck = RedisScript(embedded: PackageResources.recheck_lua)
    static let recheckGroups = RedisScript(embedded: PackageResources.recheck_groups_lua)
    static let recheckMeeting = RedisScript(embedded: PackageResources.recheck_meeting_lua)
    static let read = RedisScript(embedded: PackageResources.read_lua)
}
