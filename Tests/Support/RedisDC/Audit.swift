// Reads the engine's records and checks that they are consistent.
import Foundation
import Hiredis
import TestSupport
import Testing

/// The records of one partition at one moment, decoded independently of the library
/// (docs/wire-format.md).
struct Audit {
    struct Claim {
        var state: Character
        var mode: Character
        var priority: Character
        var count: Int
        var tick: Double
        var name: String
        /// With its leading zero byte.
        var note: [UInt8]
    }

    /// The members of a light switch's group, which hold one permit together.
    struct Group {
        var count: Int
        var created: Double
    }

    struct Resource {
        var kind: Character
        var family: Character
        var permits: Int
        var limit: Int
        var free: Int
        var waiting: Int
        var created: Double
        var signalled: Int
        /// The last fence that the cohort which holds a mutex may use.
        var lastFence: Double
        var consumed: Int
        /// The claim that holds a mutex without groups.
        var holder: String
    }

    /// Key: session, slot and number, separated by colons.
    private(set) var claims: [String: Claim] = [:]
    /// All slots, with or without a claim: session, colon and slot.
    private(set) var slots: Set<String> = []
    private(set) var resources: [String: Resource] = [:]
    /// Key: name, zero byte and group.
    private(set) var groups: [[UInt8]: Group] = [:]
    /// Items of buffers and meetings of exchangers: name, zero byte and tick.
    private(set) var items: Set<[UInt8]> = []
    private(set) var meetings: Set<[UInt8]> = []
    /// The claims that have brought a value to an exchanger, and the parties of the meetings.
    private(set) var brought: Set<String> = []
    private(set) var parties: Set<String> = []
    private(set) var sessions: Set<String> = []
    private(set) var lines: Set<[UInt8]> = []

    init(_ redis: RedisClient, namespace: String = "default", partition: Int = 0) async throws {
        let prefix = "rdc:{\(namespace):\(partition)}:"
        let replies = try await redis.transaction([
            ["HGETALL", .string(prefix + "book")], ["ZRANGE", .string(prefix + "sessions"), 0, -1],
            ["ZRANGE", .string(prefix + "index"), 0, -1], ["HGETALL", .string(prefix + "values")],
        ])
        let cells = (replies[0].array ?? []) + (replies[3].array ?? [])
        for index in stride(from: 0, to: cells.count - 1, by: 2) {
            guard let field = cells[index].bytes, let value = cells[index + 1].bytes else { continue }
            let key = Array(field.dropFirst(2))
            let rest = String(decoding: key, as: UTF8.self)
            switch String(decoding: field.prefix(2), as: UTF8.self) {
            case "c:":
                slots.insert(rest)
                if value.first == UInt8(ascii: "d") { continue }
                claims["\(rest):\(Int(Self.doubles(value[1...], 1)[0]))"] = Self.claim(value)
            case "t:": resources[rest] = Self.resource(value)
            case "g:":
                let numbers = Self.doubles(value[...], 2)
                groups[key] = Group(count: Int(numbers[0]), created: numbers[1])
            case "v:": items.insert(key)
            case "e:":
                meetings.insert(key)
                let ids = String(decoding: value.dropFirst(8), as: UTF8.self)
                parties.formUnion(ids.split(separator: " ").map(String.init))
            case "b:": brought.insert(rest)
            default: break
            }
        }
        // The slot of a mutex's claim may say `held` after its release: the record names the holder.
        claims = claims.filter { id, claim in
            !"mk".contains(claim.mode) || claim.state != "h" || resources[claim.name]?.holder == id
                || resources[claim.name]?.family == "g"
        }
        sessions = Set(replies[1].array?.compactMap(\.string) ?? [])
        lines = Set(replies[2].array?.compactMap(\.bytes) ?? []).subtracting([Array("a".utf8)])
    }

    private static func doubles(_ bytes: ArraySlice<UInt8>, _ count: Int) -> [Double] {
        (0..<count).map { index in
            var bits: UInt64 = 0
            for byte in bytes.dropFirst(8 * index).prefix(8).reversed() { bits = bits << 8 | UInt64(byte) }
            return Double(bitPattern: bits)
        }
    }

    private static func claim(_ bytes: [UInt8]) -> Claim {
        let numbers = doubles(bytes[9...], 2)
        // After `t:`.
        let name = bytes[29...].prefix { $0 != 0 }
        return Claim(
            state: Character(UnicodeScalar(bytes[0])), mode: Character(UnicodeScalar(bytes[25])),
            priority: Character(UnicodeScalar(bytes[26])), count: Int(numbers[0]), tick: numbers[1],
            name: String(decoding: name, as: UTF8.self), note: Array(bytes[name.endIndex...]))
    }

    private static func resource(_ bytes: [UInt8]) -> Resource {
        let n = doubles(bytes[3...], 7)
        let isMutex = bytes[0] == UInt8(ascii: "m")
        return Resource(
            kind: Character(UnicodeScalar(bytes[0])), family: Character(UnicodeScalar(bytes[2])), permits: Int(n[3]),
            limit: Int(n[4]), free: Int(n[1]), waiting: Int(n[0]), created: n[5], signalled: isMutex ? 0 : Int(n[6]),
            lastFence: isMutex ? n[6] : 0, consumed: Int(n[2]), holder: String(decoding: bytes[59...], as: UTF8.self))
    }

    /// Checks that permits are conserved, and that index and records agree.
    func check(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
        var expected: Set<[UInt8]> = []
        for (id, claim) in claims {
            if claim.state == "h", !"mk".contains(claim.mode) || resources[claim.name]?.family == "g" {
                expected.insert(Array("h\(claim.name)\0\(id)".utf8))
            }
            if claim.state == "w" {
                let tick = withUnsafeBytes(of: UInt64(claim.tick).bigEndian) { Array($0) }
                expected.insert(Array("q\(claim.name)\0\(claim.priority)".utf8) + tick + Array(id.utf8))
                if claim.mode == "t" {
                    expected.insert(Array("g\(claim.name)".utf8) + claim.note + Array("\0\(id)".utf8))
                }
            }
        }
        for slot in slots {
            #expect(sessions.contains(String(slot.prefix { $0 != ":" })), comment, sourceLocation: sourceLocation)
        }
        let found = lines.filter { !Array("tduv".utf8).contains($0[0]) }
        #expect(found == expected, comment, sourceLocation: sourceLocation)
        checkItems(comment, sourceLocation)
        for (key, group) in groups {
            let name = String(decoding: key.prefix { $0 != 0 }, as: UTF8.self)
            let members = claims.values.count {
                $0.name == name && $0.state == "h" && $0.mode == "t" && $0.tick >= group.created
                    && key.elementsEqual(name.utf8 + $0.note)
            }
            #expect(group.count == members && members > 0, comment, sourceLocation: sourceLocation)
        }
        for (name, resource) in resources {
            let own = claims.values.filter { $0.name == name }
            // Permits that are granted to be consumed already count as consumed.
            let taken = own.filter { $0.state == "h" && $0.tick >= resource.created }
                .reduce(0) { $0 + $1.count }
            let together = groups.count {
                $0.key.starts(with: Array("\(name)\0".utf8)) && $0.value.created == resource.created
            }
            // Barriers, phasers and latches do not count permits.
            let countsPermits = !"beplz".contains(resource.kind)
            #expect(
                !countsPermits
                    || resource.free + taken + together == resource.limit + resource.signalled - resource.consumed,
                "conservation of \(name): \(resource), \(taken) taken. \(comment?.rawValue ?? "")",
                sourceLocation: sourceLocation)
            #expect(resource.waiting == own.count { $0.state == "w" }, comment, sourceLocation: sourceLocation)
        }
    }

    /// Checks that each item is free or taken by a claim, that each meeting has a party that may
    /// still read it, and that no value is kept for a party that has neither met nor waits.
    private func checkItems(_ comment: Comment?, _ sourceLocation: SourceLocation) {
        let free = lines.filter { $0[0] == UInt8(ascii: "v") }.map { Array($0.dropFirst()) }
        let held = claims.values.filter { $0.mode == "i" }.map { Array($0.name.utf8) + $0.note }
        #expect(items == Set(free + held), comment, sourceLocation: sourceLocation)
        for (name, resource) in resources where resource.kind == "i" {
            let unread = claims.values.count { $0.name == name && $0.mode == "l" && $0.state == "h" }
            let own = free.count { $0.starts(with: Array("\(name)\0".utf8)) }
            #expect(own == resource.free + unread, comment, sourceLocation: sourceLocation)
        }
        let met = claims.values.filter { $0.mode == "e" && $0.state == "h" }.map { Array($0.name.utf8) + $0.note }
        #expect(meetings == Set(met), comment, sourceLocation: sourceLocation)
        let waiting = claims.filter { $0.value.mode == "e" && $0.value.state == "w" }.keys
        #expect(brought == parties.union(waiting), comment, sourceLocation: sourceLocation)
    }
}
