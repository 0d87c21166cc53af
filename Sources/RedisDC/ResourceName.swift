/// The rule for names of semaphores and all other primitives.
enum ResourceName {
    static let longest = 512

    /// Names are UTF-8, 1 to 512 bytes, without control characters or braces (which would change a cluster's slot).
    static func validate(_ name: String) throws(RedisDCError) {
        let length = name.utf8.count
        guard (1...longest).contains(length) else {
            throw RedisDCError(.invalidArgument, "a name has 1 to \(longest) bytes, this one has \(length)")
        }
        for scalar in name.unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control
            if isControl || scalar == "{" || scalar == "}" {
                let found = isControl ? "a control character (U+\(String(scalar.value, radix: 16)))" : "\"\(scalar)\""
                throw RedisDCError(
                    .invalidArgument, "a name has no control characters and no braces, this one has \(found)")
            }
        }
    }
}
