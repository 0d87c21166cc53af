/// The rules for names: of mailboxes and namespaces, of devices, ids, types and headers.
enum MailName {
    /// UTF-8, 1 to 512 bytes, without control characters or braces (which would change a cluster's slot).
    static func validate(_ name: String, _ what: String = "name", longest: Int = 512) throws(QueueListenError) {
        let length = name.utf8.count
        guard (1...longest).contains(length) else {
            throw QueueListenError(.invalidArgument, "a \(what) has 1 to \(longest) bytes, this one has \(length)")
        }
        for scalar in name.unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control
            if isControl || scalar == "{" || scalar == "}" {
                let found = isControl ? "a control character (U+\(String(scalar.value, radix: 16)))" : "\"\(scalar)\""
                throw QueueListenError(
                    .invalidArgument, "a \(what) has no control characters and no braces, this one has \(found)")
            }
        }
    }

    /// One line of at most so many bytes, which may be empty.
    static func validate(line: String, _ what: String, longest: Int) throws(QueueListenError) {
        guard line.utf8.count <= longest else {
            throw QueueListenError(
                .invalidArgument, "a \(what) has at most \(longest) bytes, this one has \(line.utf8.count)")
        }
        for scalar in line.unicodeScalars where scalar.properties.generalCategory == .control {
            throw QueueListenError(
                .invalidArgument,
                "a \(what) has no control characters, this one has U+\(String(scalar.value, radix: 16))")
        }
    }
}
