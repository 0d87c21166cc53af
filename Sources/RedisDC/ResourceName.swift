import CoordinationBase

/// The rule for names of semaphores and all other primitives.
enum ResourceName {
    static func validate(_ name: String) throws(RedisDCError) {
        if let fault = faultOfName(name) { throw RedisDCError(.invalidArgument, fault) }
    }
}
