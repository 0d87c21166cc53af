// A node that uses nothing of the library but its Lua files, like a program in another language.
import Foundation
import Hiredis
import TestSupport
import Testing

/// A session that follows docs/wire-format.md with the scripts alone.
///
/// `alter` may change the scripts before they are loaded, to test what depends on a line.
final class ForeignNode: Sendable {
    private let redis: RedisClient
    let session = String(UUID().uuidString.filter { $0 != "-" }.prefix(16))
    private let alter: @Sendable (String) -> String
    private let requests = Requests()

    init(
        _ redis: RedisClient, ttl: Duration = .seconds(60), alter: @escaping @Sendable (String) -> String = { $0 }
    ) async throws {
        self.redis = redis
        self.alter = alter
        let reply = try await run(
            "join",
            [
                .string(session), "epoch of a foreign node", .integer(Int(ttl / .microseconds(1))), "1 layout 3",
                "elsewhere 1 foreign",
            ])
        try #require(reply.first == "ok")
    }

    /// Sends a request and returns the elements of its reply as text, those of nested arrays too.
    ///
    /// - Parameters:
    ///   - operation: the name of the script in ``scripts``.
    ///   - arguments: those after the resource's field.
    ///   - number: the number of the request, by default the next one. A repeated number uses its
    ///     slot again.
    ///   - claim: the number of the request that made the claim that this one is about. The scripts
    ///     have it before the other arguments, but those of `pass` after the resource. Its slot is used.
    ///   - slotOf: the number of an earlier request whose slot is used. By default a request uses a
    ///     slot that no other one has used.
    func request(
        _ operation: String, _ name: String, _ arguments: [RedisArgument] = [], number: Int? = nil,
        claim: Int? = nil, slotOf earlier: Int? = nil
    ) async throws -> [String] {
        let (number, slot) = await requests.begin(number, claim, earlier)
        var arguments = arguments
        if let claim { arguments.insert(.integer(claim), at: operation.hasPrefix("pass") ? 2 : 0) }
        return try await run(
            operation, [.string("c:\(session):\(slot)"), .integer(number), .string("t:\(name)")] + arguments)
    }

    /// Sends a heartbeat.
    ///
    /// - Returns: the microseconds after which the next one must be sent, or 0 for the usual time.
    @discardableResult
    func heartbeat(ttl: Duration = .seconds(60)) async throws -> Int {
        let reply = try await run("heartbeat", [.string(session), .integer(Int(ttl / .microseconds(1))), ""])
        return reply.last.flatMap { Int($0) } ?? -1
    }

    /// Ends a claim of an expired session; with a word, by force.
    func end(
        _ operation: String, _ name: String, claim: Int, of other: ForeignNode, word: RedisArgument = ""
    ) async throws -> [String] {
        let slot = await other.requests.slot(of: claim)
        let field = RedisArgument.string("c:\(other.session):\(slot)")
        return try await run(operation, [field, word, .string("t:\(name)"), .integer(claim)])
    }

    /// Runs a script that needs no slot.
    func run(_ name: String, _ arguments: [RedisArgument]) async throws -> [String] {
        let script = RedisScript(alter(try Self.text(of: name)))
        return Self.elements(try await redis.script(script, keys: Self.keys, arguments: arguments))
    }

    private static func elements(_ reply: RESPValue) -> [String] {
        if let array = reply.array { return array.flatMap { elements($0) } }
        return [reply.string ?? reply.integer.map { "\($0)" } ?? ""]
    }

    /// Returns the number of the last request that `body` sends, which also names its claim.
    func number(of body: () async throws -> Void) async throws -> Int {
        try await body()
        return await requests.last
    }

    /// Returns the claim of a request, as the scripts and `Audit` name it.
    func id(_ number: Int) async -> String { "\(session):\(await requests.slot(of: number)):\(number)" }

    func signal(_ name: String, _ count: Int = 1) async throws {
        let reply = try await request("signal", name, ["sf", "0", .integer(count)])
        try #require(reply == ["1"])
    }

    /// Acquires a permit to consume, and returns the reply (`1`, `0` in the queue, `-1`) and the
    /// number of the claim.
    func acquire(_ name: String, queues: Bool = true) async throws -> (status: String, claim: Int) {
        let reply = try await request("acquire", name, ["sf", "0", "c", 1, queues ? "0" : "1"])
        return (reply[0], await requests.last)
    }

    /// Confirms the arrival of a claim's consumed permits.
    func confirm(_ claim: Int) async throws {
        _ = try await run("confirm", [.string(session), .string("\(await requests.slot(of: claim)):\(claim)")])
    }

    /// Lets the session expire now, as if it had sent no heartbeat and a sweep had begun.
    func expire() async throws { try await setExpiry(0) }

    /// Sets the time until which the session lasts, in microseconds since 1970. 1 has passed, but no script has acted
    /// on it yet.
    func setExpiry(_ expires: Int) async throws {
        let script = RedisScript(
            """
            local field = 's:' .. ARGV[1]
            local _, notices, slots = struct.unpack('<ddd', redis.call('HGET', KEYS[1], field))
            redis.call('HSET', KEYS[1], field, struct.pack('<ddd', ARGV[2], notices, slots))
            return redis.call('ZADD', KEYS[3], 'XX', ARGV[2], ARGV[1])
            """)
        _ = try await redis.script(script, keys: Self.keys, arguments: [.string(session), .integer(expires)])
    }

    var channel: SubscriptionTopic { .channel("rdc:{default:0}:wake:\(session)") }

    // MARK: Scripts

    /// The last one is that of the puts into the buffer `s`.
    private static let keys = ["book", "index", "sessions", "values", "put:s"].map { "rdc:{default:0}:\($0)" }

    private static let folder = packageRoot.appendingPathComponent("Sources/RedisDC/Scripts")

    /// Returns the text of an operation's script: the file with its name, or its parts.
    private static func text(of operation: String) throws -> String {
        guard let parts = scripts[operation] else {
            return try source(operation.map { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" }.joined())
        }
        return try (["layout"] + parts).map { try source($0) }.joined(separator: "\n")
    }

    /// Returns a script, or a part of one: the file `name`.lua.
    static func source(_ name: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent("\(name).lua"), encoding: .utf8)
    }

    /// The names of all files of scripts.
    static func parts() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".lua") }
            .map { String($0.dropLast(4)) }
    }

    /// The parts of scripts that are not one file, in the order of Scripts.swift.
    private static let scripts: [String: [String]] = [
        "acquire": ["permits", "slot", "new_claim", "free_slot", "resource", "acquire"],
        "releaseMutex": ["release_mutex", "own_claim", "end_permits", "end_slot", "grant", "write"],
        "release": ["own_claim", "end_permits", "end_slot", "grant", "write"],
        "endPermits": ["other_claim", "end_permits", "end_slot", "grant", "write"],
        "signal": ["permits", "slot", "new_call", "free_slot", "resource", "signal", "call", "grant", "write"],
        "create": ["permits", "slot", "new_call", "free_slot", "resource", "create", "call", "grant", "write"],
        "resize": ["permits", "slot", "new_call", "free_slot", "resource", "resize", "call", "grant", "write"],
        "setTurnstile": [
            "permits", "slot", "new_call", "free_slot", "resource", "set_turnstile", "call", "grant", "write",
        ],
        "reduce": ["reduce", "grant", "write"],
        "extendFences": ["extend_fences"],
        "recheck": ["permits", "recheck", "grant", "write"],
        "waitForLatch": ["permits", "slot", "new_claim", "free_slot", "resource", "latch", "acquire"],
        "countDown": [
            "permits", "slot", "new_call", "free_slot", "resource", "latch", "count_down", "call", "grant", "write",
        ],
        "participate": ["permits", "slot", "new_claim", "free_slot", "resource", "latch", "register"],
        "releaseParticipant": ["own_claim", "end_participant", "end_slot", "grant", "write"],
        "endParticipant": ["other_claim", "end_participant", "end_slot", "grant", "write"],
        "pass": ["permits", "pass", "resource", "pass_permit", "grant", "delete_values", "write"],
        "passOnce": [
            "permits", "pass", "resource", "known_put", "pass_permit", "remember_put", "grant", "delete_values",
            "write",
        ],
        "acquireForPut": ["permits", "slot", "new_claim", "free_slot", "resource", "known_put", "acquire"],
        "releaseItem": ["own_claim", "end_item", "end_slot", "grant", "delete_values", "write"],
        "endItem": ["other_claim", "end_item", "end_slot", "grant", "delete_values", "write"],
        "acquireInGroup": ["groups", "slot", "new_claim", "free_slot", "resource", "group_acquire", "write"],
        "releaseInGroup": ["own_claim", "end_group", "end_slot", "group_grant", "write"],
        "endInGroup": ["other_claim", "end_group", "end_slot", "group_grant", "write"],
        "signalGroups": [
            "groups", "slot", "new_call", "free_slot", "resource", "signal", "call", "group_grant", "write",
        ],
        "createForGroups": [
            "groups", "slot", "new_call", "free_slot", "resource", "create", "call", "group_grant", "write",
        ],
        "resizeForGroups": [
            "groups", "slot", "new_call", "free_slot", "resource", "resize", "call", "group_grant", "write",
        ],
        "recheckGroups": ["groups", "recheck", "group_grant", "write"],
        "arrive": [
            "meetings", "slot", "new_claim", "free_slot", "resource", "arrive", "meeting_grant", "delete_values",
            "write",
        ],
        "register": ["meetings", "slot", "new_claim", "free_slot", "resource", "register"],
        "releaseParty": ["own_claim", "end_meeting", "end_slot", "meeting_grant", "delete_values", "write"],
        "endParty": ["other_claim", "end_meeting", "end_slot", "meeting_grant", "delete_values", "write"],
        "recheckMeeting": ["meetings", "recheck", "meeting_grant", "delete_values", "write"],
        "destroy": ["slot", "new_call", "free_slot", "destroy", "clear_step", "delete_values", "write"],
        "clear": ["clear", "recheck", "clear_step", "delete_values", "write"],
        "settleClaim": ["slot", "new_claim", "free_slot", "settle"],
        "settleCall": ["slot", "new_call", "free_slot", "settle"],
    ]
}

/// The numbers and slots of a session's requests.
private actor Requests {
    /// The number of the last request.
    private(set) var last = 0
    private var slots: [Int: Int] = [:]
    private var slotCount = 0

    /// Returns the number and the slot of a request, which are new by default.
    ///
    /// - Parameters:
    ///   - claim: the number of the request that made the claim. It may be sent later.
    ///   - earlier: the number of a request whose slot is used.
    func begin(_ number: Int?, _ claim: Int?, _ earlier: Int?) -> (number: Int, slot: Int) {
        let number = number ?? last + 1
        last = max(last, number)
        let slot = slots[claim ?? number] ?? earlier.flatMap { slots[$0] } ?? slotCount
        slots[number] = slot
        if let claim { slots[claim] = slot }
        slotCount = max(slotCount, slot + 1)
        return (number, slot)
    }

    func slot(of number: Int) -> Int { slots[number] ?? 0 }
}
