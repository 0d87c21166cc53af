// Named resources of different kinds, as requests describe them.
import Hiredis

/// A named resource managed by the engine, as a request describes it.
struct Resource: Sendable, Hashable {
    var name: String
    var kind: ResourceKind
    /// The number of permits it is created with when it does not exist; `nil` requires it to exist.
    var permits: Int?
    /// The letter of the policy: see records.lua. `nil` is the policy of the existing resource.
    var policy: Unicode.Scalar? = "f"

    /// The same resource for an operation that requires it to exist.
    var existing: Resource {
        var resource = self
        resource.permits = nil
        return resource
    }

    /// The letters of the kind and the policy: see records.lua.
    var letters: String { String(kind.traits.letter) + (policy.map { String($0) } ?? "") }

    /// The arguments that describe a resource: see read_or_create_resource in resources.lua.
    var arguments: [RedisArgument] { [.string(letters), permits.map { .integer($0) } ?? ""] }
}

// MARK: For error messages

extension Resource: CustomStringConvertible {
    /// The kind and the quoted name: `mutex "orders"`.
    var description: String { "\(kind) \"\(name)\"" }

    /// The kind, the number of permits or parties, and the policy in words.
    var configuration: String { kind.described(permits: permits, policy: policy) }
}
