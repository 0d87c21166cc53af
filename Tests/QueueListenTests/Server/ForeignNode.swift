import Foundation
import Hiredis
import Testing

/// A participant that uses only the Lua files, as docs/wire-format.md describes for programs in
/// other languages.
///
/// Its scripts can be altered, to test what depends on a line.
struct ForeignNode: Sendable {
    static let process = "0123456789abcdef"
    static let files = [
        "mail_head", "mail_limits", "mail_send", "mail_listen", "mail_check", "mail_begin", "mail_finish",
        "mail_take_over",
    ]
    let redis: RedisClient
    var process = Self.process
    var alter: @Sendable (String) -> String = { $0 }
    /// The eight limits in the order of mail_limits.lua.
    var limits: [RedisArgument] = ["1000", "1000000", "0", "r", "0", "0", "0", "0"]

    /// The elements of a reply as text; empty if the server refused.
    typealias Reply = [String]

    func send(
        _ texts: [String], to names: [String], sender: String = "foreigner", number: Int, settled: Int? = nil,
        part: String? = nil, fingerprint: String = "f", tag: String = "tag-of-it", knowledge: RedisArgument = ""
    ) async throws -> Reply {
        var arguments: [RedisArgument] = ["1", .string("epoch-8\(number)")] + limits
        arguments += [
            .integer(number), settled.map { .integer($0) } ?? .string(part ?? ""), "60000", .string(fingerprint),
        ]
        arguments += [.integer(texts.count), knowledge]
        for (position, text) in texts.enumerated() {
            arguments += [
                .string(String((tag + "\(number)\(position)").suffix(8))), "0", "",
                .string("id=\(number)/\(position)\n\n\(text)"),
            ]
        }
        let keys = [key("meta"), key("sent:\(sender)")] + names.flatMap { [key("box:\($0)"), key("mail:\($0)")] }
        return try await run(["mail_head", "mail_limits", "mail_send"], keys, arguments)
    }

    /// - Parameter cursor: index, epoch and tag, as in a reply.
    func listen(
        to name: String, after cursor: (index: String, epoch: String, tag: String)? = nil, device: String = "d",
        poll: Int = 1, begins: Bool = true, waits: Bool = true
    ) async throws -> Reply {
        var arguments: [RedisArgument] = ["1", "epoch-99"] + limits
        arguments += [
            .string(device), .string(process), .integer(poll),
            begins ? "1" : "0", waits ? "60000" : "0",
        ]
        arguments += [.string(cursor?.index ?? ""), .string(cursor?.epoch ?? ""), .string(cursor?.tag ?? "")]
        arguments += ["100", "100000"]
        return try await run(
            ["mail_head", "mail_limits", "mail_listen"], [key("meta"), key("box:\(name)"), key("mail:\(name)")],
            arguments)
    }

    // MARK: Cross-partition sends

    func begin(_ id: String, fingerprint: String = "f") async throws -> Reply {
        try await run(
            ["mail_begin"], [key("meta"), key("split:\(id)"), key("splits")],
            ["1", .string(id), .string(fingerprint), "encodedSend", "60000"])
    }

    func finish(_ id: String, indices: String) async throws {
        _ = try await run(
            ["mail_finish"], [key("split:\(id)"), key("splits")], [.string(id), .string(indices), "60000"])
    }

    func takeOver() async throws -> Reply { try await run(["mail_take_over"], [key("splits")], ["1000000", "10"]) }

    /// The cursor after the last message of a reply.
    static func end(_ reply: Reply) -> (index: String, epoch: String, tag: String) {
        guard let last = reply.dropFirst(5).last else { return (reply[2], reply[1], reply[3]) }
        let tag = Array(last.utf8)[7..<15]
        return ("\(Int(reply[2])! + reply.count - 5)", reply[1], String(decoding: tag, as: UTF8.self))
    }

    /// The body of each message: what follows the empty line.
    static func texts(_ reply: Reply) -> [String] {
        reply.dropFirst(5).map { message in
            let envelope = String(decoding: message.utf8.dropFirst(34), as: UTF8.self)
            return envelope.range(of: "\n\n").map { String(envelope[$0.upperBound...]) } ?? "?"
        }
    }

    func key(_ suffix: String) -> String { "ql:{default:0}:\(suffix)" }

    static func source(_ name: String) throws -> String {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/QueueListen/Scripts")
        return try String(contentsOf: folder.appendingPathComponent("\(name).lua"), encoding: .utf8)
    }

    private func run(_ parts: [String], _ keys: [String], _ arguments: [RedisArgument]) async throws -> Reply {
        let source = try parts.map { try Self.source($0) }.joined()
        let reply: RESPValue
        do throws(RedisError) {
            reply = try await redis.script(RedisScript(alter(source)), keys: keys, arguments: arguments)
        } catch {
            if error.code == .serverError || error.code == .outOfMemory { return [] }
            throw error
        }
        // Messages have binary numbers in front: one byte, one character.
        return (reply.array ?? []).map { part in
            part.integer.map { "\($0)" }
                ?? String(String.UnicodeScalarView((part.bytes ?? []).map { Unicode.Scalar($0 & 0x7F) }))
        }
    }
}
