// Reads the records of the server without the library.
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
        /// The group of a member, for example.
        var note: String
    }

    struct Resource {
        var kind: Character
        var policy: Character
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
    private(set) var slots: [String] = []
    private(set) var resources: [String: Resource] = [:]
    private(set) var sessions: Set<String> = []
    /// When sessions expire, in microseconds since 1970; less than 0 while one is swept.
    private(set) var expiries: [String: Double] = [:]
    /// The sessions that have not expired by the server's clock.
    private(set) var livingSessions: Set<String> = []
    private(set) var lines: Set<[UInt8]> = []
    /// When the groups have entered that have members inside: the resource's `created`, by the resource, a zero byte and
    /// the group.
    private(set) var groups: [String: Double] = [:]

    init(_ server: SimulatedRedis, _ keys: PartitionKeys) {
        var server = server
        let cells = server.execute("HGETALL", Bytes(keys.all[0])).elements?.compactMap(\.bytes?.array) ?? []
        for index in stride(from: 0, to: cells.count - 1, by: 2) { read(cells[index], cells[index + 1]) }
        let members = { (reply: Reply) in reply.elements?.compactMap(\.bytes?.array) ?? [] }
        let texts = { (reply: Reply) in Set(members(reply).map { String(decoding: $0, as: UTF8.self) }) }
        let scores = members(server.execute("ZRANGE", Bytes(keys.all[2]), "0", "-1", "WITHSCORES"))
            .map { String(decoding: $0, as: UTF8.self) }
        for index in stride(from: 0, to: scores.count - 1, by: 2) {
            expiries[scores[index]] = Double(scores[index + 1])
        }
        sessions = Set(expiries.keys)
        livingSessions = texts(
            server.execute("ZRANGEBYSCORE", Bytes(keys.all[2]), Bytes("(\(server.now)"), "+inf"))
        lines = Set(members(server.execute("ZRANGE", Bytes(keys.all[1]), "0", "-1"))).subtracting([Array("a".utf8)])
        // The slot of a mutex's claim may say `held` after its release: the record names the holder, or a line does.
        claims = claims.filter { id, claim in
            guard claim.mode == "m", claim.state == "h" else { return true }
            let resource = resources[claim.name]
            if resource?.family == "g" { return lines.contains(Self.line(ofHolder: id, claim)) }
            return resource?.holder == id
        }
    }

    static func line(ofHolder id: String, _ claim: Claim) -> [UInt8] { Array("h\(claim.name)\0\(id)".utf8) }

    private mutating func read(_ field: [UInt8], _ value: [UInt8]) {
        let rest = String(decoding: field.dropFirst(2), as: UTF8.self)
        switch String(decoding: field.prefix(2), as: UTF8.self) {
        case "c:":
            slots.append(rest)
            guard value.first != UInt8(ascii: "d"), value.count >= 29 else { return }
            let numbers = Self.doubles(value[9...], 2)
            let name = value[29...].prefix { $0 != 0 }
            let claim = Claim(
                state: Self.character(value[0]), mode: Self.character(value[25]), priority: Self.character(value[26]),
                count: Int(numbers[0]), tick: numbers[1], name: String(decoding: name, as: UTF8.self),
                note: String(decoding: value[29...].dropFirst(name.count + 1), as: UTF8.self))
            claims["\(rest):\(Int(Self.doubles(value[1...], 1)[0]))"] = claim
        case "t:":
            guard value.count >= 59 else { return }
            let n = Self.doubles(value[3...], 7)
            let isMutex = value[0] == UInt8(ascii: "m")
            resources[rest] = Resource(
                kind: Self.character(value[0]), policy: Self.character(value[1]), family: Self.character(value[2]),
                waiting: Int(n[0]), free: Int(n[1]), consumed: Int(n[2]), limit: Int(n[4]), created: n[5],
                signalled: isMutex ? 0 : Int(n[6]), holder: String(decoding: value[59...], as: UTF8.self))
        case "g:":
            let numbers = Self.doubles(value[...], 2)
            if numbers[0] > 0 { groups[rest] = numbers[1] }
        default: break
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

extension SimulatedProcess {
    /// Whether the server has a lease of the process.
    func isStored(_ claim: UInt64) -> Bool {
        guard let known = machine.claims[claim], let number = known.number, let slot = known.slot else { return false }
        let ledger = Ledger(world.servers.master, world.keys)
        guard let stored = ledger.claims["\(machine.life.id):\(slot):\(number)"], stored.state != "w" else {
            return false
        }
        return stored.tick >= ledger.resources[stored.name]?.created ?? .infinity
    }
}
