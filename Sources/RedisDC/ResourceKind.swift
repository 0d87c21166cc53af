// The kinds of resources.

/// The kind of a resource, as ``Coordinator/inspect(_:limit:)`` and ``Coordinator/list(limit:)``
/// report it.
///
/// More kinds may be added: switch over it with a `default`.
public enum ResourceKind: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// A ``Semaphore``.
    case semaphore
    /// A ``DistributedMutex``, which is also the resource of an ``Election``.
    case mutex
    /// A ``ReadWriteLock``.
    case readWriteLock = "read-write lock"
    /// A ``Condition``.
    case condition
    /// A ``Turnstile``.
    case turnstile
    /// A ``Latch``.
    case latch
    /// A ``Barrier``.
    case barrier
    /// A ``Phaser``.
    case phaser
    /// An ``Exchanger``.
    case exchanger
    /// The places of a ``BoundedBuffer``.
    case boundedBuffer = "bounded buffer"
    /// The items of a ``BoundedBuffer``.
    case bufferItems = "bounded buffer's items"
    /// A ``Barrier`` or ``Latch`` that broke. It stays broken until it is destroyed.
    case broken
    /// A resource that was destroyed and whose last claims are being removed.
    case beingDestroyed = "being destroyed"

    /// The kind in words, such as `read-write lock`.
    public var description: String { rawValue }

    private static let ofLetter = Dictionary(uniqueKeysWithValues: allCases.map { ($0.traits.letter, $0) })

    /// - Parameter letters: the kind and its policy, as in records.lua. `nil` if there is no record any more.
    init(letters: String?) { self = letters?.first.flatMap { Self.ofLetter[$0] } ?? .beingDestroyed }
}

extension ResourceKind {
    /// The properties of a kind that requests, error messages, inspections and tests use.
    struct Traits: Sendable {
        /// The meaning of a resource's number of permits.
        enum Size: Sendable {
            case none, permits, parties
        }

        /// The kind's letter in the server's records: see records.lua.
        var letter: Character
        /// The letters of its policies, and the words for each in error messages.
        var policies: [Unicode.Scalar: String] = ["f": ""]
        var size = Size.none
        /// The verb of a request in error messages.
        var verb = "acquire"
        /// Why a request waits on the server.
        var unavailability = "others hold it or are ahead in the queue"
        /// The error of a request that was not granted in time.
        var refusal = RedisDCError.Code.timedOut
        /// The scripts that end its claims, unless a reply names others.
        var family = Family.permits
        /// Whether its claims have values of the application: items, or what parties bring.
        var hasValues = false
    }

    var traits: Traits {
        switch self {
        case .semaphore:
            Traits(letter: "s", policies: ["f": ", first come first served", "b": ", barging"], size: .permits)
        case .mutex: Traits(letter: "m")
        case .readWriteLock:
            Traits(letter: "r", policies: ["f": "", "r": " that prefers readers", "w": " that prefers writers"])
        case .condition: Traits(letter: "c", verb: "wait for", unavailability: "it was not notified")
        case .turnstile: Traits(letter: "t", verb: "pass", unavailability: "it is closed")
        case .latch:
            Traits(
                letter: "l", policies: ["f": ", broken by a death", "d": ", where a death counts as down"],
                size: .parties, verb: "pass", unavailability: "it is closed", family: .participant)
        case .barrier:
            Traits(
                letter: "b",
                policies: ["b": ", broken by a party that leaves", "o": ", where a party that leaves is removed"],
                size: .parties, verb: "pass", unavailability: "the other parties have not arrived",
                family: .meetings)
        case .phaser:
            Traits(
                letter: "p", verb: "pass", unavailability: "the other parties have not arrived", family: .meetings)
        case .exchanger:
            Traits(
                letter: "e", policies: ["o": ""], size: .parties, verb: "pass",
                unavailability: "the other parties have not arrived", family: .meetings, hasValues: true)
        case .boundedBuffer:
            Traits(letter: "k", size: .parties, verb: "put an item into", unavailability: "it is full", refusal: .full)
        case .bufferItems:
            Traits(
                letter: "i", verb: "take an item from", unavailability: "it is empty", refusal: .empty,
                hasValues: true)
        case .broken: Traits(letter: "z", unavailability: "it is broken")
        case .beingDestroyed: Traits(letter: "x", unavailability: "it is being destroyed")
        }
    }

    /// The kind with the number of permits or parties, and the policy, in words: `a semaphore with 3 permits, barging`.
    ///
    /// - Parameters:
    ///   - permits: `nil` for any number.
    ///   - policy: `nil` for any policy.
    func described(permits: Int?, policy: Unicode.Scalar?) -> String {
        if self == .broken || self == .beingDestroyed { return rawValue }
        let traits = traits
        let number = permits.map { "\($0)" } ?? "any number of"
        let size =
            switch traits.size {
            case .none: ""
            case .permits: " with \(number) permits"
            case .parties: " for \(number)"
            }
        let article = "aeiou".contains(rawValue.prefix(1)) ? "an" : "a"
        return "\(article) \(rawValue)\(size)" + (policy.flatMap { traits.policies[$0] } ?? "")
    }
}
