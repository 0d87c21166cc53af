// The run of a node whose requests arrive a second time, and the records that these copies must not change.
import Foundation
import Hiredis
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// The content of a partition's records: claims, resources and what is stored for them. Not: the time until which sessions
/// last, which of them watch, and the numbers in slots without a claim.
struct PartitionSnapshot: Equatable {
    private(set) var fields: [[UInt8]: [UInt8]] = [:]
    private(set) var lines: Set<[UInt8]> = []
    /// Whether permits are consumed whose arrival is not confirmed yet.
    private(set) var isUnconfirmed = false

    init(_ redis: RedisClient) async throws {
        let replies = try await redis.transaction([
            ["HGETALL", "rdc:{default:0}:book"], ["ZRANGE", "rdc:{default:0}:index", 0, -1],
            ["HGETALL", "rdc:{default:0}:values"],
        ])
        let cells = [replies[0], replies[2]].flatMap { $0.array ?? [] }.compactMap(\.bytes)
        for index in stride(from: 0, to: cells.count - 1, by: 2) { fields[cells[index]] = cells[index + 1] }
        fields[Array("watchers".utf8)] = nil
        lines = Set((replies[1].array ?? []).compactMap(\.bytes))
        let claims = Set(try await Audit(redis).claims.keys)
        fields = fields.filter { field, value in
            guard field.starts(with: Array("c:".utf8)) else { return true }
            let number = value.dropFirst().prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return claims.contains(
                String(decoding: field.dropFirst(2), as: UTF8.self) + ":\(Int(Double(bitPattern: number)))")
        }
        for (field, value) in fields {
            if field.starts(with: Array("s:".utf8)) { fields[field] = Array(value.dropFirst(8)) }
            if field.starts(with: Array("c:".utf8)), value.first == UInt8(ascii: "g") { isUnconfirmed = true }
        }
    }

    /// Returns the fields and lines that are different.
    func difference(to other: PartitionSnapshot) -> [String] {
        let names = Set(fields.keys).union(other.fields.keys).filter { fields[$0] != other.fields[$0] }
        return (Array(names) + Array(lines.symmetricDifference(other.lines))).map {
            String(decoding: $0, as: UTF8.self)
        }
        .sorted()
    }
}

/// A node whose requests arrive a second time after each step, and another node.
struct LateRun {
    let one: Coordinator
    let two: Coordinator
    let late: LateRedis
    let redis: RedisClient
    let observer: RedisClient

    /// Waits until the step is complete, and lets all copies of this step and the earlier ones arrive: those of this step
    /// come after their retry, the others after their slots served other requests.
    func step(_ what: String, _ body: () async throws -> Void) async throws {
        try await body()
        try await arrive(after: what)
    }

    func arrive(after what: String) async throws {
        try await until("\(what) is complete") {
            // What the node sends without being waited for, it has sent when its event loop has come so far.
            await withCheckedContinuation { reached in late.redis.execute { reached.resume() } }
            guard late.isIdle else { return false }
            return try await !PartitionSnapshot(observer).isUnconfirmed && late.isIdle
        }
        var before = try await PartitionSnapshot(observer)
        try await late.deliver(to: observer) { copy in
            let after = try await PartitionSnapshot(observer)
            #expect(after == before, "after \(what), \(before.difference(to: after)): \(copy)")
            before = after
        }
        try await Audit(observer).check("\(what)")
    }

    /// A step in which a call fails with a code.
    func refused(_ what: String, _ code: RedisDCError.Code, _ body: () async throws -> Void) async throws {
        try await step(what) { #expect(await errorOf(body)?.code == code) }
    }

    /// Runs `waiting` at the late node until it is queued for the resource, then `next`.
    func queued(
        _ name: String, _ waiting: @escaping @Sendable () async throws -> Void, then next: () async throws -> Void
    )
        async throws
    {
        let task = Task { try await waiting() }
        try await until("a wait for \(name)") { try await two.inspect(name)?.waiterCount == 1 }
        try await next()
        try await task.value
    }

    /// Cancels `waiting` at the late node when it is queued for the resource.
    func cancelled(_ name: String, _ waiting: @escaping @Sendable () async throws -> Void) async throws {
        let task = Task { try await waiting() }
        try await until("a wait for \(name)") { try await two.inspect(name)?.waiterCount == 1 }
        task.cancel()
        #expect(await errorOf { try await task.value }?.code == .cancelled)
    }
}
