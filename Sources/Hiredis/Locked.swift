package import NIOConcurrencyHelpers

/// A value behind a lock that ThreadSanitizer can see (docs/decisions/0014), for modules that do not
/// import NIO. Copies share the value.
package struct Locked<Value: Sendable>: Sendable {
    @usableFromInline package let box: NIOLockedValueBox<Value>

    /// Protects a value.
    @inlinable
    package init(_ value: Value) { box = NIOLockedValueBox(value) }

    /// Calls `body` with the value while holding the lock.
    @inlinable
    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try box.withLockedValue(body)
    }
}
