// The rules for all names.

/// What is wrong with a name: it is UTF-8 of 1 to so many bytes, without control characters or braces, which would change a
/// cluster's slot. `nil` when nothing is.
package func faultOfName(_ name: String, _ what: String = "name", longest: Int = 512) -> String? {
    let length = name.utf8.count
    guard (1...longest).contains(length) else { return "a \(what) has 1 to \(longest) bytes, this one has \(length)" }
    for scalar in name.unicodeScalars {
        // The tables of Unicode are slow to ask.
        let isControl =
            scalar.isASCII
            ? scalar.value < 0x20 || scalar.value == 0x7F : scalar.properties.generalCategory == .control
        if isControl || scalar == "{" || scalar == "}" {
            let found = isControl ? "a control character (U+\(String(scalar.value, radix: 16)))" : "\"\(scalar)\""
            return "a \(what) has no control characters and no braces, this one has \(found)"
        }
    }
    return nil
}

/// A name as the server compares them: by its bytes. Two texts that Swift takes for equal may be two names.
package struct ByteName: Hashable {
    private let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        if text.utf8.withContiguousStorageIfAvailable({ hasher.combine(bytes: UnsafeRawBufferPointer($0)) }) == nil {
            for byte in text.utf8 { hasher.combine(byte) }
        }
    }
}

/// What is wrong with a list of names that is to be kept in a dictionary of texts: two of them that are different to the
/// server, and the same to Swift. `nil` when nothing is.
package func faultOfNames(_ names: [String]) -> String? {
    var seen: [String: String] = [:]
    for name in names {
        if let other = seen.updateValue(name, forKey: name), ByteName(other) != ByteName(name) {
            return "two names, \(Array(other.utf8)) and \(Array(name.utf8)) in bytes, are the same text, \"\(name)\""
        }
    }
    return nil
}
