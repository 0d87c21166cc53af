import NIOConcurrencyHelpers

/// A value behind a lock that ThreadSanitizer can see (docs/decisions.md), for modules that do not
/// import NIO.
package final class Locked<Value: Sendable>: Sendable {
    private let box: NIOLockedValueBox<Value>

    /// Protects a value.
    package init(_ value: Value) { box = NIOLockedValueBox(value) }

    /// Calls `body` with the value while holding the lock.
    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try box.withLockedValue(body)
    }
}
