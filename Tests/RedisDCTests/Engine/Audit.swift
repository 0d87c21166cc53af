// Reads the engine's table and checks that it agrees with itself.
import Foundation
import Hiredis
import Testing

/// The table of one partition at one moment, decoded independently of the library (docs/wire-format.md).
struct Audit {
    struct Claim {
        var state: Character
        var priority: Character
        var count: Int
        var tick: Double
        var name: String
    }

    struct Thing {
        var kind: Character
        var permits: Int
        var limit: Int
        var free: Int
        var waiting: Int
        var created: Double
        var signalled: Int
        var consumed: Int
    }

    private(set) var claims: [String: Claim] = [:]
    private(set) var answers: Set<String> = []
    private(set) var things: [String: Thing] = [:]
    private(set) var sessions: Set<String> = []
    private(set) var lines: Set<[UInt8]> = []

    init(_ redis: RedisClient, namespace: String = "default") async throws {
        let prefix = "rdc:{\(namespace):0}:"
        let replies = try await redis.transaction([
            ["HGETALL", .string(prefix + "book")], ["ZRANGE", .string(prefix + "sessions"), 0, -1],
            ["ZRANGE", .string(prefix + "index"), 0, -1],
        ])
        let cells = replies[0].array ?? []
        for index in stride(from: 0, to: cells.count - 1, by: 2) {
            guard let field = cells[index].string, let value = cells[index + 1].bytes else { continue }
            let rest = String(field.dropFirst(2))
            switch field.prefix(2) {
            case "c:":
                if value == [UInt8(ascii: "d")] { answers.insert(rest) } else { claims[rest] = Self.claim(value) }
            case "t:": things[rest] = Self.thing(value)
            default: break
            }
        }
        sessions = Set(replies[1].array?.compactMap(\.string) ?? [])
        lines = Set(replies[2].array?.compactMap(\.bytes) ?? [])
    }

    private static func doubles(_ bytes: ArraySlice<UInt8>, _ count: Int) -> [Double] {
        (0..<count).map { index in
            var bits: UInt64 = 0
            for byte in bytes.dropFirst(8 * index).prefix(8).reversed() { bits = bits << 8 | UInt64(byte) }
            return Double(bitPattern: bits)
        }
    }

    private static func claim(_ bytes: [UInt8]) -> Claim {
        let numbers = doubles(bytes[3...], 2)
        return Claim(
            state: Character(UnicodeScalar(bytes[0])), priority: Character(UnicodeScalar(bytes[2])),
            count: Int(numbers[0]), tick: numbers[1], name: String(decoding: bytes[19...], as: UTF8.self))
    }

    private static func thing(_ bytes: [UInt8]) -> Thing {
        let n = doubles(bytes[2...], 7)
        return Thing(
            kind: Character(UnicodeScalar(bytes[0])), permits: Int(n[0]), limit: Int(n[1]), free: Int(n[2]),
            waiting: Int(n[3]), created: n[4], signalled: Int(n[5]), consumed: Int(n[6]))
    }

    /// Conservation, and that index and book say the same.
    func check(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
        var expected: Set<[UInt8]> = []
        for (id, claim) in claims {
            expected.insert(Array("s\(id)".utf8))
            if claim.state == "h" { expected.insert(Array("h\(claim.name)\0\(id)".utf8)) }
            if claim.state == "w" {
                let tick = withUnsafeBytes(of: UInt64(claim.tick).bigEndian) { Array($0) }
                expected.insert(Array("q\(claim.name)\0\(claim.priority)".utf8) + tick + Array(id.utf8))
            }
            #expect(sessions.contains(String(id.prefix { $0 != ":" })), comment, sourceLocation: sourceLocation)
        }
        let found = lines.filter { ![UInt8(ascii: "t"), UInt8(ascii: "d")].contains($0.first) }
        #expect(found == expected, comment, sourceLocation: sourceLocation)
        for (name, thing) in things {
            let own = claims.values.filter { $0.name == name }
            let taken = own.filter { ($0.state == "h" || $0.state == "g") && $0.tick > thing.created }
                .reduce(0) { $0 + $1.count }
            // Barriers, phasers and latches do not count permits.
            let countsPermits = !"bplz".contains(thing.kind)
            #expect(
                !countsPermits || thing.free + taken == thing.limit + thing.signalled - thing.consumed,
                "conservation of \(name): \(thing), \(taken) taken. \(comment?.rawValue ?? "")",
                sourceLocation: sourceLocation)
            #expect(thing.waiting == own.count { $0.state == "w" }, comment, sourceLocation: sourceLocation)
        }
    }
}
