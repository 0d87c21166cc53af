import CoordinationBase

/// The rule for the names of semaphores and all other primitives: 1 to 512 bytes of UTF-8 without
/// control characters or braces.
enum ResourceName {
    static func validate(_ name: String) throws(RedisDCError) {
        if let fault = faultOfName(name) { throw RedisDCError(.invalidArgument, fault) }
    }
}
