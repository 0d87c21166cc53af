// Checks of arguments before anything is sent.
import CoordinationBase

/// The rule for the names of semaphores and all other primitives: 1 to 512 bytes of UTF-8 without
/// control characters or braces. The name of a namespace also has no colon.
enum ResourceName {
    static func validate(_ name: String) throws(RedisDCError) {
        if let fault = invalidReason(name) { throw RedisDCError(.invalidArgument, fault) }
    }

    static func validate(namespace: String) throws(RedisDCError) {
        try validate(namespace)
        if namespace.utf8.contains(UInt8(ascii: ":")) {
            throw RedisDCError(
                .invalidArgument, "namespace \"\(namespace)\" contains a colon, which is not allowed")
        }
    }
}

/// Checks that an argument is in its range.
///
/// - Parameters:
///   - label: the argument's name.
///   - action: the call in words, such as `make barrier "start"`.
/// - Throws: `.invalidArgument`: `cannot make barrier "start": parties is 0, expected 1 to 1024`.
func checkArgument<Value: Comparable>(
    _ label: String, _ value: Value, in range: ClosedRange<Value>, cannot action: @autoclosure () -> String
) throws(RedisDCError) {
    guard !range.contains(value) else { return }
    throw RedisDCError(
        .invalidArgument,
        "cannot \(action()): \(label) is \(value), expected \(range.lowerBound) to \(range.upperBound)")
}
