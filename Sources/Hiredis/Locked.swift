// A lock around a value, for the layers above that do not see NIO.
import NIOConcurrencyHelpers

/// A value behind a lock that ThreadSanitizer can see (docs/decisions.md).
package final class Locked<Value: Sendable>: Sendable {
    private let box: NIOLockedValueBox<Value>

    package init(_ value: Value) { box = NIOLockedValueBox(value) }

    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try box.withLockedValue(body)
    }
}
