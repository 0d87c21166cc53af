#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads and writes JSON without changing the values inside: their text is passed on as it is, so that numbers keep
/// their digits and the application's own coders apply.
enum RawJSON {
    typealias Text = ArraySlice<UInt8>

    // MARK: Write

    /// Returns a text as a JSON string.
    static func string(_ text: String) -> [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                out += Array("\\u00".utf8) + [UInt8(ascii: "0") + (byte >> 4)]
                out.append(Array("0123456789abcdef".utf8)[Int(byte & 15)])
            default: out.append(byte)
            }
        }
        return out + [UInt8(ascii: "\"")]
    }

    /// Returns an object. A member whose value is `nil` is left out.
    static func object(_ members: [(name: String, value: [UInt8]?)]) -> [UInt8] {
        let texts = members.compactMap { name, value in value.map { string(name) + [UInt8(ascii: ":")] + $0 } }
        return [UInt8(ascii: "{")] + texts.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }

    /// Returns an array.
    static func array(_ values: [[UInt8]]) -> [UInt8] {
        [UInt8(ascii: "[")] + values.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
    }

    // MARK: Read

    /// Returns the members of an object with the texts of their values; `nil` if it is no object.
    ///
    /// - Parameter text: valid JSON, which a decoder has accepted.
    static func members(of text: Text) -> [String: Text]? {
        var scanner = Scanner(rest: text)
        guard scanner.take(UInt8(ascii: "{")) else { return nil }
        var members: [String: Text] = [:]
        while !scanner.take(UInt8(ascii: "}")) {
            guard let name = scanner.value(),
                let decoded = try? JSONDecoder().decode(String.self, from: Data(name)),
                scanner.take(UInt8(ascii: ":")), let value = scanner.value()
            else { return nil }
            members[decoded] = value
            _ = scanner.take(UInt8(ascii: ","))
        }
        return members
    }

    /// Returns the texts of an array's values; `nil` if it is no array.
    ///
    /// - Parameter text: valid JSON, which a decoder has accepted.
    static func elements(of text: Text) -> [Text]? {
        var scanner = Scanner(rest: text)
        guard scanner.take(UInt8(ascii: "[")) else { return nil }
        var elements: [Text] = []
        while !scanner.take(UInt8(ascii: "]")) {
            guard let value = scanner.value() else { return nil }
            elements.append(value)
            _ = scanner.take(UInt8(ascii: ","))
        }
        return elements
    }

    /// Finds where values begin and end.
    private struct Scanner {
        var rest: Text

        mutating func skipSpace() {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        }

        /// Takes a character if it comes next.
        mutating func take(_ character: UInt8) -> Bool {
            skipSpace()
            guard rest.first == character else { return false }
            rest = rest.dropFirst()
            return true
        }

        /// Takes a value; `nil` if none comes next.
        mutating func value() -> Text? {
            skipSpace()
            let begin = rest.startIndex
            var depth = 0
            var end = begin
            scan: while end < rest.endIndex {
                switch rest[end] {
                case UInt8(ascii: "\""):
                    end = endOfString(end)
                    if depth == 0 { break scan }
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    // The end of what surrounds a number or a word.
                    if depth == 0 { break scan }
                    depth -= 1
                    if depth == 0 {
                        end += 1
                        break scan
                    }
                case UInt8(ascii: ","), UInt8(ascii: ":"), 0x20, 0x09, 0x0A, 0x0D: if depth == 0 { break scan }
                default: break
                }
                end += 1
            }
            guard begin < end else { return nil }
            defer { rest = rest[end...] }
            return rest[begin..<end]
        }

        /// Returns the index behind a string.
        private func endOfString(_ begin: Int) -> Int {
            var index = begin + 1
            while index < rest.endIndex, rest[index] != UInt8(ascii: "\"") {
                index += rest[index] == UInt8(ascii: "\\") ? 2 : 1
            }
            return min(index + 1, rest.endIndex)
        }
    }
}
