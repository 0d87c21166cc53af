/// The kinds of primitives in a ``KindMix``.
public enum Kind: String, CaseIterable, Sendable {
    /// A semaphore whose permits are consumed and signalled.
    case semaphore
    /// A semaphore whose permits are leased.
    case pool
    /// A mutex.
    case mutex
    /// A read-write lock.
    case readWriteLock
    /// Light switches of two groups on one mutex.
    case lightSwitch
    /// A condition variable.
    case condition
    /// A barrier.
    case barrier
    /// A double barrier.
    case doubleBarrier
    /// A phaser.
    case phaser
    /// A latch.
    case latch
    /// A turnstile.
    case turnstile
    /// An exchanger.
    case exchanger
    /// A bounded buffer.
    case boundedBuffer
    /// A leader election.
    case election
    /// Several mutexes locked together.
    case severalLocks
}
