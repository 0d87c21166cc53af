// The rules for all names, and how names are compared.

/// Returns what is wrong with a name, or `nil` when it is valid.
///
/// A valid name has 1 to `maxBytes` bytes of UTF-8 without control characters and without braces, which would change
/// the slot in a cluster.
package func invalidReason(_ name: String, _ what: String = "name", maxBytes: Int = 512) -> String? {
    let length = name.utf8.count
    guard (1...maxBytes).contains(length) else { return "a \(what) has 1 to \(maxBytes) bytes, this one has \(length)" }
    for scalar in name.unicodeScalars {
        // Looking up a Unicode category is slow; ASCII does not need it.
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

/// A name that is compared by its bytes, as the server does. Two strings that Swift considers equal may be two names.
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

/// Returns what is wrong with names that become keys of a dictionary of strings, or `nil` when they are valid.
///
/// They are invalid when two of them differ in their bytes and are equal as Swift strings.
package func invalidReason(_ names: [String]) -> String? {
    var seen: [String: String] = [:]
    for name in names {
        if let other = seen.updateValue(name, forKey: name), ByteName(other) != ByteName(name) {
            return "two names, \(Array(other.utf8)) and \(Array(name.utf8)) in bytes, are the same text, \"\(name)\""
        }
    }
    return nil
}
