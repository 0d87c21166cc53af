import CoordinationBase

/// The rules for names: of mailboxes and namespaces, of devices, ids, types and headers.
enum MailName {
    static func validate(_ name: String, _ what: String = "name", longest: Int = 512) throws(QueueListenError) {
        if let fault = faultOfName(name, what, maxBytes: longest) { throw QueueListenError(.invalidArgument, fault) }
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
