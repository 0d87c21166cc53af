import CoordinationBase

/// The rules for names: of mailboxes, namespaces, devices, send ids, types and headers.
enum MailName {
    /// Checks that a name is 1 to `maxBytes` bytes of UTF-8 without control characters and braces.
    ///
    /// - Parameter what: the kind of name, for the error message.
    /// - Throws: `.invalidArgument`.
    static func validate(_ name: String, _ what: String = "name", maxBytes: Int = 512) throws(QueueListenError) {
        if let fault = invalidReason(name, what, maxBytes: maxBytes) { throw QueueListenError(.invalidArgument, fault) }
    }

    /// Checks that a text is at most `maxBytes` bytes without control characters. It may be empty.
    ///
    /// - Throws: `.invalidArgument`.
    static func validate(line: String, _ what: String, maxBytes: Int) throws(QueueListenError) {
        guard line.utf8.count <= maxBytes else {
            throw QueueListenError(
                .invalidArgument, "a \(what) has at most \(maxBytes) bytes, this one has \(line.utf8.count)")
        }
        for scalar in line.unicodeScalars where scalar.properties.generalCategory == .control {
            throw QueueListenError(
                .invalidArgument,
                "a \(what) has no control characters, this one has U+\(String(scalar.value, radix: 16))")
        }
    }
}
