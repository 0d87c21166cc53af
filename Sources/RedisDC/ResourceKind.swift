// The kinds of resources, as inspections and lists report them.

/// The kind of a resource that ``Coordinator/inspect(_:limit:)`` or ``Coordinator/list(limit:)`` reports.
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

    /// - Parameter letters: the kind and its policy, as in layout.lua.
    init(letters: String?) {
        let letter = letters.map { String($0.prefix(1)) }
        self =
            switch letter.flatMap({ Resource.Kind(rawValue: $0) }) {
            case .semaphore: .semaphore
            case .mutex: .mutex
            case .readWriteLock: .readWriteLock
            case .condition: .condition
            case .turnstile: .turnstile
            case .latch: .latch
            case .barrier: .barrier
            case .phaser: .phaser
            case .exchanger: .exchanger
            case .boundedBuffer: .boundedBuffer
            case .bufferItems: .bufferItems
            case nil: letter == "z" ? .broken : .beingDestroyed
            }
    }
}
