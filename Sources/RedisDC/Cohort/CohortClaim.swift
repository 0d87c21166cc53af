// The state of a cohort's claim on a mutex that the cohort shares with the engine and its requests.
import Hiredis
import Synchronization

/// A claim on a mutex for all tasks of this process.
///
/// The engine's requests read the last fence from it, and the engine reports here that others wait. This may happen
/// before the cohort knows of the grant.
final class CohortClaim: Sendable {
    /// Whether other processes wait for the mutex, as far as this process knows.
    enum Demand: UInt8, Comparable, Sendable {
        /// None waits. The first one that does will be reported.
        case none
        /// They may wait without being reported, because messages do not arrive.
        case unknown
        case waiting

        static func < (a: Demand, b: Demand) -> Bool { a.rawValue < b.rawValue }
    }

    /// The fences that Redis has reserved with the grant, and the waiters that it has reported. The raw value is in the
    /// reply and in the message.
    enum Reservation: UInt64 {
        /// Nothing is known: the reply or the message was lost, or groups use the mutex.
        case unknown = 0
        /// A range of fences, and nobody waits behind the cohort.
        case unawaited = 1
        /// A range of fences, and others wait behind the cohort.
        case awaited = 2
    }

    private let fence = Atomic<UInt64>(0)
    private let state = Atomic<UInt8>(Demand.none.rawValue)
    private let onRecall: @Sendable (CohortClaim) -> Void

    /// - Parameter onRecall: called after each change of ``demand``, on any thread.
    init(onRecall: @escaping @Sendable (CohortClaim) -> Void) { self.onRecall = onRecall }

    /// The last fence that a task of this process has been given; 0 before the first.
    var lastFence: UInt64 {
        get { fence.load(ordering: .acquiring) }
        set { fence.store(newValue, ordering: .releasing) }
    }

    var demand: Demand { Demand(rawValue: state.load(ordering: .acquiring))! }

    /// Reports that others wait, or may wait.
    func recall(_ demand: Demand) {
        if state.max(demand.rawValue, ordering: .acquiringAndReleasing).oldValue < demand.rawValue { onRecall(self) }
    }
}

// MARK: Operations

/// Reserves more fences for the cohort that holds a mutex, and reads whether others wait.
struct ExtendFences: EngineOperation {
    struct Value: Sendable {
        /// The last fence that the cohort may use.
        var end: UInt64
        /// Whether others wait for the mutex.
        var isAwaited: Bool
    }

    let held: HeldClaim
    let cohort: CohortClaim

    var name: String { held.name }
    var once: Once { .claim(held.number, isEnded: false) }
    var arguments: [RedisArgument] { [.string(String(held.number)), .string(String(cohort.lastFence))] }

    func script(_ family: Family?) -> RedisScript { Scripts.extendFences }

    static func value(of reply: EngineReply) -> Value? {
        if case .granted(let end, let waiting) = reply { Value(end: end, isAwaited: waiting > 0) } else { nil }
    }
}

extension Scripts {
    static let extendFences = RedisScript(embedded: PackageResources.extend_fences_lua)
}
