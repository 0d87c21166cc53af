// The arguments and the order of SCAN and HSCAN, and the patterns of names.

/// A call of SCAN or HSCAN.
struct Scan {
    private let cursor: UInt64
    private var pattern: Pattern?
    private var count = 10
    /// The type of the keys.
    private(set) var type: Bytes?

    init(cursor: Bytes, options: ArraySlice<Bytes>, takesType: Bool = false) throws(RedisError) {
        guard let cursor = UInt64(cursor.text) else { throw RedisError("ERR invalid cursor") }
        self.cursor = cursor
        var options = options
        while let option = options.popFirst() {
            guard let value = options.popFirst() else { throw .syntax }
            if option.isWord("COUNT") {
                let number = try value.requireInteger()
                guard number >= 1 else { throw .syntax }
                count = Int(clamping: number)
            } else if option.isWord("MATCH") {
                pattern = Pattern(value)
            } else if takesType, option.isWord("TYPE") {
                type = value
            } else {
                throw .syntax
            }
        }
    }

    /// Returns the names of a page that match, and the next cursor.
    func page(of names: some Sequence<Bytes>) -> (names: [Bytes], cursor: Bytes) {
        var places = names.lazy.map { ScanPlace(of: $0) }.filter { $0.checksum >= cursor }.sorted()
        var next: UInt64 = 0
        if places.count > count {
            // Names with the same checksum are in one page.
            var end = count
            while end < places.count, places[end].checksum == places[end - 1].checksum { end += 1 }
            if end < places.count { next = places[end].checksum }
            places.removeSubrange(end...)
        }
        let found = places.map(\.name).filter { pattern?.matches($0) ?? true }
        return (found, Bytes(String(next)))
    }
}

/// A pattern of names: `*`, `?`, `[abc]`, `[^a-c]`, and a backslash before a character that stands for itself.
struct Pattern: Hashable, Sendable {
    private enum Part: Hashable {
        case any
        case one
        case byte(UInt8)
        case range([ClosedRange<UInt8>], isNegated: Bool)
    }
    private var parts: [Part] = []

    init(_ pattern: Bytes) {
        var rest = pattern.array[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "*"): if parts.last != .any { parts.append(.any) }
            case UInt8(ascii: "?"): parts.append(.one)
            case UInt8(ascii: "["): parts.append(Self.range(&rest))
            case UInt8(ascii: "\\"): parts.append(.byte(rest.popFirst() ?? byte))
            default: parts.append(.byte(byte))
            }
        }
    }

    private static func range(_ rest: inout ArraySlice<UInt8>) -> Part {
        var ranges: [ClosedRange<UInt8>] = []
        let isNegated = rest.first == UInt8(ascii: "^")
        if isNegated { rest.removeFirst() }
        while var byte = rest.popFirst(), byte != UInt8(ascii: "]") {
            if byte == UInt8(ascii: "\\"), let next = rest.popFirst() { byte = next }
            let index = rest.startIndex
            if rest.count >= 2, rest[index] == UInt8(ascii: "-") {
                let end = rest[index + 1]
                ranges.append(min(byte, end)...max(byte, end))
                rest.removeFirst(2)
            } else {
                ranges.append(byte...byte)
            }
        }
        return .range(ranges, isNegated: isNegated)
    }

    func matches(_ name: Bytes) -> Bool { Self.matches(parts[...], name.array[...]) }

    private static func matches(_ parts: ArraySlice<Part>, _ bytes: ArraySlice<UInt8>) -> Bool {
        var parts = parts
        var bytes = bytes
        while let part = parts.popFirst() {
            if part == .any {
                if parts.isEmpty { return true }
                return (bytes.startIndex...bytes.endIndex).contains { matches(parts, bytes[$0...]) }
            }
            guard let byte = bytes.popFirst() else { return false }
            switch part {
            case .any, .one: break
            case .byte(let wanted): if byte != wanted { return false }
            case .range(let ranges, let isNegated):
                if ranges.contains(where: { $0.contains(byte) }) == isNegated { return false }
            }
        }
        return bytes.isEmpty
    }
}
