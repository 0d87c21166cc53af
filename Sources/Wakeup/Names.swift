// The rule for all names.

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
