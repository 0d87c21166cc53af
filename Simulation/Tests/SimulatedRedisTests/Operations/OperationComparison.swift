// Runs the same operations on a real server and a simulated one.

import Foundation
import SimulatedRedis

/// Compares operations, their replies and what they leave behind.
final class OperationComparison {
    let comparison: Comparison
    private var scripts: ScriptLibrary
    /// A simulated server that has loaded the scripts.
    private let loaded: SimulatedRedis
    private(set) var compared: [String: Int] = [:]
    /// How many replies were errors.
    private(set) var errors = 0

    init(_ server: RealServer) throws {
        comparison = try Comparison(server)
        scripts = try ScriptLibrary()
        var simulated = try comparison.emptyServers()
        let digests = try scripts.load { try server.connection.send($0) }
        guard try scripts.load({ simulated.execute($0) ?? .null }) == digests,
            !digests.values.contains(where: \.isError)
        else { throw ConnectionFailure(reason: "a script has another SHA-1") }
        loaded = simulated
    }

    /// The scripts of modules that no operation has run.
    func unused(_ modules: [String]) -> [String] {
        scripts.texts.keys.filter { name in
            compared[name] == nil && modules.contains { name.hasPrefix($0 + "/") }
        }.sorted()
    }
    var count: Int { compared.values.reduce(0, +) }

    /// Runs operations on empty servers. Returns the first difference.
    func firstDifference(_ operations: [Operation]) throws -> Difference? {
        var simulated = loaded
        _ = try comparison.real.connection.send(["FLUSHALL"])
        simulated.advance(to: try comparison.real.time())
        var start = 0
        while start < operations.count {
            var end = start
            while end < operations.count, !operations[end].isScan { end += 1 }
            if let difference = try compare(operations, start..<end, &simulated) { return difference }
            if end < operations.count, let difference = try compareScan(operations[end], end, &simulated) {
                return difference
            }
            start = end + 1
        }
        return try comparison.firstDifferenceOfKeys(&simulated).map {
            Difference(count: operations.count, what: $0.what, real: $0.real, simulated: $0.simulated)
        }
    }

    private func compare(
        _ operations: [Operation], _ range: Range<Int>, _ simulated: inout SimulatedRedis
    ) throws -> Difference? {
        let replies = try comparison.real.connection.send(pipeline: operations[range].map { $0.command(scripts) })
        for index in range {
            let operation = operations[index]
            let real = replies[index - range.lowerBound]
            let reply = simulated.execute(operation.command(scripts)) ?? .null
            compared[operation.name, default: 0] += 1
            if reply.isError { errors += 1 }
            if !comparison.dialect.isSame(operation, real: real, simulated: reply) {
                return Difference(count: index + 1, what: "\(operation)", real: "\(real)", simulated: "\(reply)")
            }
        }
        return nil
    }

    /// Scans to the end on both servers, whose cursors differ.
    private func compareScan(
        _ operation: Operation, _ index: Int, _ simulated: inout SimulatedRedis
    ) throws -> Difference? {
        let real = try scan(operation) { try comparison.real.connection.send($0) }
        let pages = try scan(operation) { simulated.execute($0) ?? .null }
        compared[operation.name, default: 0] += 1
        guard real != pages else { return nil }
        return Difference(count: index + 1, what: "\(operation)", real: "\(real)", simulated: "\(pages)")
    }

    /// The lines of all pages in one order.
    private func scan(_ operation: Operation, _ execute: ([Bytes]) throws -> Reply) throws -> [String] {
        var operation = operation
        var lines: [String] = []
        repeat {
            let reply = try execute(operation.command(scripts))
            if reply.isError { return ["error"] }
            guard let elements = reply.elements else {
                operation.arguments[0] = Bytes(reply.integer ?? 0)
                continue
            }
            operation.arguments[0] = elements.first?.bytes ?? "0"
            lines += elements.dropFirst(3).flatMap { $0.elements ?? [] }.map(\.description)
        } while operation.arguments[0] != "0"
        return lines.sorted()
    }
}

extension Operation {
    fileprivate var isScan: Bool {
        if case .scan = kind { true } else { false }
    }
}

extension Dialect {
    /// Whether two replies are equal but for remaining times and texts of errors.
    fileprivate func isSame(_ operation: Operation, real: Reply, simulated: Reply) -> Bool {
        if real == simulated { return true }
        if case .command = operation.kind { return isSame(operation.arguments, real: real, simulated: simulated) }
        switch (real, simulated) {
        case (.array(let one), .array(let other)):
            return one.count == other.count
                && zip(one, other).allSatisfy { isSame(operation, real: $0, simulated: $1) }
        // A time that remains.
        case (.integer(let one), .integer(let other)):
            return operation.repliesTime && one > 10_000 && other > 10_000 && abs(one - other) < 5000
        case (.error(let one), .error(let other)): return isSameScriptError(one, other)
        default: return false
        }
    }

    /// Redis 6.2 has another form of the errors of scripts, Valkey leaves the digest out, and the texts that begin with
    /// ERR are those of 7.0 in 7.0 only.
    private func isSameScriptError(_ one: Bytes, _ other: Bytes) -> Bool {
        guard version != 700 else { return false }
        let text = other.text
        let message = text.range(of: " script: ").map { String(text[..<$0.lowerBound]) } ?? text
        return one.text.contains(message) || text.hasPrefix("ERR ") && one.text.hasPrefix("ERR ")
            || one.text.prefix { $0 != " " } == text.prefix { $0 != " " }
    }
}

extension Operation {
    fileprivate var repliesTime: Bool {
        ["mail/inspect", "arcade/words_start", "arcade/words_read", "services/board_submit"].contains(name)
    }
}
