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

    /// The kind's letter in the server's records: see records.lua.
    var letter: Character {
        switch self {
        case .semaphore: "s"
        case .mutex: "m"
        case .readWriteLock: "r"
        case .condition: "c"
        case .turnstile: "t"
        case .latch: "l"
        case .barrier: "b"
        case .phaser: "p"
        case .exchanger: "e"
        case .boundedBuffer: "k"
        case .bufferItems: "i"
        case .broken: "z"
        case .beingDestroyed: "x"
        }
    }

    /// Whether its claims have values of the application: items, or what parties bring.
    var hasValues: Bool { self == .exchanger || self == .bufferItems }

    private static let ofLetter = Dictionary(uniqueKeysWithValues: allCases.map { ($0.letter, $0) })

    /// - Parameter letters: the kind and its policy, as in records.lua. `nil` if there is no record any more.
    init(letters: String?) { self = letters?.first.flatMap { Self.ofLetter[$0] } ?? .beingDestroyed }

    /// Why a request waits on the server.
    var unavailability: String {
        switch self {
        case .semaphore, .mutex, .readWriteLock: "others hold it or are ahead in the queue"
        case .condition: "it was not notified"
        case .turnstile, .latch: "it is closed"
        case .barrier, .phaser, .exchanger: "the other parties have not arrived"
        case .boundedBuffer: "it is full"
        case .bufferItems: "it is empty"
        case .broken, .beingDestroyed: "it is \(self)"
        }
    }
}
