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
