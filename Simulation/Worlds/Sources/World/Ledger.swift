// Reads the records of the server without the library, and checks that they are consistent.
import SimulatedRedis

@testable import RedisDC

/// The records of a partition at one moment: see docs/wire-format.md.
struct Ledger {
    struct Claim {
        /// `w` waiting, `g` granted, `h` held.
        var state: Character
        var mode: Character
        var priority: Character
        var count: Int
        var tick: Double
        var name: String
    }

    struct Resource {
        var kind: Character
        var family: Character
        var waiting, free, consumed, limit: Int
        var created: Double
        var signalled: Int
        /// The claim that holds a mutex.
        var holder: String
    }

    /// By session, slot and number, separated by colons.
    private(set) var claims: [String: Claim] = [:]
    /// All slots: the session, a colon and the number of the slot.
    private var slots: [String] = []
    private(set) var resources: [String: Resource] = [:]
    private(set) var sessions: Set<String> = []
    /// The sessions that have not expired by the server's clock.
    private var livingSessions: Set<String> = []
    private var lines: Set<[UInt8]> = []

    init(_ server: SimulatedRedis, _ keys: PartitionKeys) {
        var server = server
        let cells = server.execute("HGETALL", Bytes(keys.all[0])).elements?.compactMap(\.bytes?.array) ?? []
        for index in stride(from: 0, to: cells.count - 1, by: 2) { read(cells[index], cells[index + 1]) }
        // The slot of a mutex's claim may say `held` after its release: the record names the holder.
        claims = claims.filter { id, claim in
            claim.mode != "m" || claim.state != "h" || resources[claim.name]?.holder == id
        }
        let members = { (reply: Reply) in reply.elements?.compactMap(\.bytes?.array) ?? [] }
        let texts = { (reply: Reply) in Set(members(reply).map { String(decoding: $0, as: UTF8.self) }) }
        sessions = texts(server.execute("ZRANGE", Bytes(keys.all[2]), "0", "-1"))
        livingSessions = texts(
            server.execute("ZRANGEBYSCORE", Bytes(keys.all[2]), Bytes("(\(server.now)"), "+inf"))
        lines = Set(members(server.execute("ZRANGE", Bytes(keys.all[1]), "0", "-1"))).subtracting([Array("a".utf8)])
    }

    private mutating func read(_ field: [UInt8], _ value: [UInt8]) {
        let rest = String(decoding: field.dropFirst(2), as: UTF8.self)
        switch String(decoding: field.prefix(2), as: UTF8.self) {
        case "c:":
            slots.append(rest)
            guard value.first != UInt8(ascii: "d"), value.count >= 29 else { return }
            let numbers = Self.doubles(value[9...], 2)
            let claim = Claim(
                state: Self.character(value[0]), mode: Self.character(value[25]), priority: Self.character(value[26]),
                count: Int(numbers[0]), tick: numbers[1],
                name: String(decoding: value[29...].prefix { $0 != 0 }, as: UTF8.self))
            claims["\(rest):\(Int(Self.doubles(value[1...], 1)[0]))"] = claim
        case "t:":
            guard value.count >= 59 else { return }
            let n = Self.doubles(value[3...], 7)
            let isMutex = value[0] == UInt8(ascii: "m")
            resources[rest] = Resource(
                kind: Self.character(value[0]), family: Self.character(value[2]), waiting: Int(n[0]), free: Int(n[1]),
                consumed: Int(n[2]), limit: Int(n[4]), created: n[5], signalled: isMutex ? 0 : Int(n[6]),
                holder: String(decoding: value[59...], as: UTF8.self))
        default: break
        }
    }

    /// The inconsistencies; empty if there is none.
    func faults() -> [String] {
        var faults: [String] = []
        var expected: Set<[UInt8]> = []
        for (id, claim) in claims {
            if claim.state == "h", claim.mode != "m" { expected.insert(Array("h\(claim.name)\0\(id)".utf8)) }
            if claim.state == "w" {
                let tick = withUnsafeBytes(of: UInt64(claim.tick).bigEndian) { Array($0) }
                expected.insert(Array("q\(claim.name)\0\(claim.priority)".utf8) + tick + Array(id.utf8))
            }
        }
        let found = lines.filter { !Array("tduv".utf8).contains($0[0]) }
        for line in found.subtracting(expected) { faults.append("a line of the index without a claim: \(Bytes(line))") }
        for line in expected.subtracting(found) {
            faults.append("a claim without its line in the index: \(Bytes(line))")
        }
        for slot in slots where !sessions.contains(String(slot.prefix { $0 != ":" })) {
            faults.append("a slot without a session: \(slot)")
        }
        for (name, resource) in resources {
            let own = claims.values.filter { $0.name == name }
            let taken = own.filter { $0.state == "h" && $0.tick >= resource.created }.reduce(0) { $0 + $1.count }
            // Barriers do not count permits.
            if resource.kind != "b", resource.free + taken != resource.limit + resource.signalled - resource.consumed {
                faults.append("permits of \(name) are not conserved: \(resource), \(taken) taken")
            }
            let waiting = own.count { $0.state == "w" }
            if resource.waiting != waiting { faults.append("\(name) counts \(resource.waiting) waiters of \(waiting)") }
        }
        return faults
    }

    /// The claims that a script has granted, which has left an earlier waiter of the same resource in the queue.
    ///
    /// - Parameter before: what the server had before the script.
    func overtakings(since before: Ledger) -> [String] {
        claims.flatMap { id, granted -> [String] in
            guard granted.state != "w", before.claims[id]?.state ?? "w" == "w", resources[granted.name]?.kind != "b"
            else { return [] }
            let isNew = before.claims[id] == nil
            return claims.compactMap { other, waiting in
                guard waiting.state == "w", waiting.name == granted.name, let was = before.claims[other],
                    was.state == "w", livingSessions.contains(String(other.prefix { $0 != ":" })),
                    isNew || was.tick < before.claims[id]!.tick
                else { return nil }
                return "\(id) was granted \(granted.name) before \(other), which had waited longer"
            }
        }
    }

    private static func character(_ byte: UInt8) -> Character { Character(UnicodeScalar(byte)) }

    private static func doubles(_ bytes: ArraySlice<UInt8>, _ count: Int) -> [Double] {
        (0..<count).map { index in
            let bits = bytes.dropFirst(8 * index).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Double(bitPattern: bits)
        }
    }
}
