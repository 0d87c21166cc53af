import Foundation
import Hiredis
import TestSupport
import Testing

@testable import QueueListen

/// A participant that uses only the Lua files, as docs/wire-format.md describes for programs in
/// other languages.
///
/// Its scripts can be altered, to test what depends on a line.
struct ForeignNode: Sendable {
    static let process = "0123456789abcdef"
    /// The scripts that it runs.
    static let scripts = [
        "send", "repair", "listen", "begin", "finish", "take_over", "schedule", "take_due", "advance", "cancel",
        "work", "beat", "list_jobs", "retry_jobs", "cancel_jobs", "pause_work",
    ]
    let redis: RedisClient
    var process = Self.process
    var alter: @Sendable (String) -> String = { $0 }
    /// Limits of Lua/records.lua; `whenFull` is 0 to reject.
    struct Limits {
        var maxMessages = 1000
        var maxBytes = 1_000_000
        var whenFull: UInt8 = 0
        var maxAge = 0
        var ttl = 0
        var backlogCount = 0
        var backlogAge = 0
        var deviceTTL = 0

        var packed: [UInt8] {
            Packed.doubles(maxMessages, maxBytes) + [whenFull]
                + Packed.doubles(maxAge, ttl, backlogCount, backlogAge, deviceTTL)
        }
    }
    var limits = Limits()

    /// Numbers in the notation of struct.pack.
    enum Packed {
        static func doubles(_ values: Int...) -> [UInt8] {
            values.flatMap { withUnsafeBytes(of: Double($0).bitPattern.littleEndian) { Array($0) } }
        }
        static func short(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }
    }

    /// A part of a cross-partition send: only probed, or delivered until a time.
    enum Part {
        case probe
        case deliver(until: Int)
    }

    /// The elements of a reply as text; empty if the server refused.
    typealias Reply = [String]

    /// - Parameters:
    ///   - earlier: the number of an earlier request in the same place, which Redis must have; 0 for none.
    ///   - knowledge: '<c8dc8' for each recipient, or empty.
    /// - Returns: `ok` and the index of the first message of each recipient, or a refusal.
    func send(
        _ texts: [String], to names: [String], sender: String = "foreigner", number: Int, after earlier: Int = 0,
        part: Part? = nil,
        fingerprint: String = "fingerpr", tag: String = "tag-of-it", knowledge: [UInt8] = [], order: String? = nil
    ) async throws -> Reply {
        var (mode, condition) = (UInt8(0), earlier)
        switch part {
        case .probe: mode = 1
        case .deliver(let time): (mode, condition) = (2, time)
        case nil: break
        }
        var header = [mode] + Packed.short(1) + [0] + Packed.short(texts.count) + Array("01".utf8)
        header += Packed.doubles(number, 60_000) + Array(fingerprint.utf8) + Packed.doubles(condition)
        header += limits.packed.prefix(33)
        for position in texts.indices { header += (tag + "\(number)\(position)").utf8.suffix(8) }
        let line = order.map { "order=\($0)\n" } ?? ""
        let bodies = texts.enumerated().map { position, text in
            RedisArgument([UInt8](repeating: 0, count: 7) + Array("id=\(number)/\(position)\n\(line)\n\(text)".utf8))
        }
        let keys = [key("meta"), key("sent:\(sender)")] + names.flatMap { [key("box:\($0)"), key("mail:\($0)")] }
        var reply = try await reply("send", keys, [RedisArgument(header + knowledge)] + bodies)
        if let parts = reply.array, parts.first?.string == "damaged", let damaged = parts.last?.integer {
            let own = knowledge.isEmpty ? [] : Array(knowledge[(24 * damaged - 24)..<(24 * damaged)])
            _ = try await run(
                "repair", [key("meta"), key("box:\(names[damaged - 1])"), key("mail:\(names[damaged - 1])")],
                [RedisArgument(Packed.short(1) + Array("epoch-8\(number)".utf8)), RedisArgument(own)])
            // The position is lost, and is not passed again.
            var rest = knowledge
            if !rest.isEmpty {
                rest.replaceSubrange((24 * damaged - 24)..<(24 * damaged), with: [UInt8](repeating: 0, count: 24))
            }
            reply = try await self.reply("send", keys, [RedisArgument(header + rest)] + bodies)
        }
        guard let results = reply.bytes else { return Self.words(reply) }
        return ["ok"]
            + stride(from: 0, to: results.count, by: 16).map { at in
                var reader = ByteReader(results[at..<at + 8])
                return "\(reader.number() ?? -1)"
            }
    }

    /// - Parameter cursor: index, epoch and tag, as in a reply.
    func listen(
        to name: String, after cursor: (index: String, epoch: String, tag: String)? = nil, device: String = "d",
        readsAhead: Bool = false, poll: Int = 1, begins: Bool = true, waits: Bool = true
    ) async throws -> Reply {
        let phase: UInt8 = (begins ? 1 : 0) + (readsAhead ? 4 : 0)
        var request = Packed.short(1) + Array("epoch-99".utf8) + [phase] + Array(process.utf8)
        request += Packed.doubles(poll, waits ? 60_000 : 0, cursor.flatMap { Int($0.index) } ?? -1)
        request += Array((cursor?.epoch ?? "no epoch").utf8) + Array((cursor?.tag ?? "no tag..").utf8)
        request += Packed.doubles(100, 100_000) + limits.packed[25...]
        let reply = try await reply(
            "listen", [key("meta"), key("box:\(name)"), key("mail:\(name)")],
            [RedisArgument(request), .string(device)])
        guard let parts = reply.array, let position = parts.dropFirst().first?.bytes, position.count == 32 else {
            return Self.words(reply)
        }
        var reader = ByteReader(position[8..<16])
        let (epoch, tag) = (Self.text(Array(position[..<8])), Self.text(Array(position[16..<24])))
        let index = "\(reader.number() ?? -1)"
        let messages = stride(from: 2, to: parts.count - 1, by: 2).map { at in
            Self.text((parts[at].bytes ?? []) + (parts[at + 1].bytes ?? []))
        }
        return [Self.text(parts[0].bytes ?? []), epoch, index, tag] + messages
    }

    // MARK: Cross-partition sends

    func begin(_ id: String, fingerprint: String = "f") async throws -> Reply {
        try await run(
            "begin", [key("meta"), key("split:\(id)"), key("splits")],
            ["1", .string(id), .string(fingerprint), "encodedSend", "60000"])
    }

    func finish(_ id: String, indices: String) async throws {
        _ = try await run(
            "finish", [key("split:\(id)"), key("splits")], [.string(id), .string(indices), "60000"])
    }

    func takeOver() async throws -> Reply { try await run("take_over", [key("splits")], ["1000000", "10"]) }

    /// The cursor after the last message of a reply.
    static func end(_ reply: Reply) -> (index: String, epoch: String, tag: String) {
        guard let last = reply.dropFirst(4).last else { return (reply[2], reply[1], reply[3]) }
        let tag = Array(last.unicodeScalars)[19..<27]
        return ("\(Int(reply[2])! + reply.count - 4)", reply[1], String(String.UnicodeScalarView(tag)))
    }

    /// The body of each message: what follows the empty line.
    static func texts(_ reply: Reply) -> [String] {
        reply.dropFirst(4).map { message in
            let envelope = String(String.UnicodeScalarView(message.unicodeScalars.dropFirst(34)))
            return envelope.range(of: "\n\n").map { String(envelope[$0.upperBound...]) } ?? "?"
        }
    }

    func key(_ suffix: String) -> String { "ql:{default:0}:\(suffix)" }

    static func source(_ name: String) throws -> String {
        let folder = packageRoot.appendingPathComponent("Sources/QueueListen/Scripts")
        return try String(contentsOf: folder.appendingPathComponent("\(name).lua"), encoding: .utf8)
    }

    func run(_ name: String, _ keys: [String], _ arguments: [RedisArgument]) async throws -> Reply {
        Self.words(try await reply(name, keys, arguments))
    }

    func reply(
        _ name: String, _ keys: [String], _ arguments: [RedisArgument]
    ) async throws -> RESPValue {
        let source = try Self.source(name)
        do throws(RedisError) {
            return try await redis.script(RedisScript(alter(source)), keys: keys, arguments: arguments)
        } catch {
            if error.code == .serverError || error.code == .outOfMemory { return .array([]) }
            throw error
        }
    }

    private static func words(_ reply: RESPValue) -> Reply {
        (reply.array ?? []).map { part in part.integer.map { "\($0)" } ?? text(part.bytes ?? []) }
    }

    /// Messages have binary numbers in front: one byte, one character.
    private static func text(_ bytes: [UInt8]) -> String {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0 & 0x7F) }))
    }
}
