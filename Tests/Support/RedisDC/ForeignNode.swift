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
    func setExpiry(_ expires: Int) async throws { try await Self.setExpiry(of: session, expires, redis) }

    static func setExpiry(of session: String, _ expires: Int, _ redis: RedisClient) async throws {
        let script = RedisScript(
            """
            local field = 's:' .. ARGV[1]
            local _, notices, slots = struct.unpack('<ddd', redis.call('HGET', KEYS[1], field))
            redis.call('HSET', KEYS[1], field, struct.pack('<ddd', ARGV[2], notices, slots))
            return redis.call('ZADD', KEYS[3], 'XX', ARGV[2], ARGV[1])
            """)
        _ = try await redis.script(script, keys: keys, arguments: [.string(session), .integer(expires)])
    }

    /// Whether another session may have expired, as the process learns that begins its next one.
    func mayHaveExpired(_ other: String) async throws -> Bool {
        let reply = try await run(
            "join", [.string(session), "", 60_000_000, "1 layout 3", "elsewhere 1 foreign", "0", .string(other)])
        return reply.last == "1"
    }

    var channel: SubscriptionTopic { .channel("rdc:{default:0}:wake:\(session)") }

    // MARK: Scripts

    /// The last one is that of the puts into the buffer `s`.
    private static let keys = ["book", "index", "sessions", "values", "put:s"].map { "rdc:{default:0}:\($0)" }

    private static let folder = packageRoot.appendingPathComponent("Sources/RedisDC")

    /// Returns the text of an operation's script.
    private static func text(of operation: String) throws -> String {
        try source(operation.map { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" }.joined())
    }

    /// Returns a script: the file `name`.lua.
    static func source(_ name: String) throws -> String { try contents("Scripts/\(name).lua") }

    /// Returns a file of the library that the scripts are made from.
    static func library(_ name: String) throws -> String { try contents("Lua/\(name).lua") }

    /// The names of all scripts.
    static func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("Scripts").path)
            .filter { $0.hasSuffix(".lua") }.map { String($0.dropLast(4)) }
    }

    private static func contents(_ path: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
    }
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
