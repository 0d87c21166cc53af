import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis
import RedisDC

/// The `redisdc inspect` command.
struct Inspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the holders and waiters of a lock or semaphore.",
        discussion:
            "Shows for each holder its node, the time of the grant and the fencing token, and the waiters in queue order. A lock without holders and waiters does not exist in Redis; this is not a failure."
    )
    .examples("redisdc inspect backup", "redisdc inspect --deadlocks")
    @OptionGroup var engine: EngineOptions
    @Argument(help: "The name of a lock or semaphore.") var name: String?
    @Flag(help: "Find cycles of processes that wait for one another, over all names.") var deadlocks = false
    @Option(help: "The maximum number of holders, and of waiters, to list. 1 to 10,000.") var limit = 100

    func validate() throws {
        guard deadlocks == (name == nil) else {
            throw ValidationError("give either a name or --deadlocks")
        }
    }

    func run() async throws {
        guard let name else { return try await reportDeadlocks() }
        try await engine.withObserver { coordinator in
            let found = try await coordinator.inspect(name, limit: limit)
            try engine.global.report(
                found.map(InspectionText.init)?.text
                    ?? "\"\(name)\" is free: it has no holders and no waiters, and no semaphore has this name",
                InspectionReport(name: name, found))
        }
    }

    private func reportDeadlocks() async throws {
        try await engine.withObserver { coordinator in
            let found = try await coordinator.deadlocks()
            for (number, deadlock) in found.enumerated() {
                let lines = deadlock.links.map {
                    "  \($0.waiterNode) waits for \"\($0.name)\", held by \($0.holderNode)"
                }
                let text = (["possible deadlock \(number + 1):"] + lines).joined(separator: "\n")
                try engine.global.report(text, DeadlockReport(links: deadlock.links.map(DeadlockReport.Link.init)))
            }
            if found.isEmpty { try engine.global.report("no deadlock found", DeadlockReport(links: [])) }
        }
    }
}

/// One deadlock as JSON; without links, the report that none was found.
private struct DeadlockReport: Encodable {
    struct Link: Encodable {
        var name: String
        var waiter: String
        var waiterNode: String
        var holder: String
        var holderNode: String

        init(_ link: Deadlock.Link) {
            (name, waiter, waiterNode) = (link.name, link.waiter, link.waiterNode)
            (holder, holderNode) = (link.holder, link.holderNode)
        }
    }
    var links: [Link]
}

/// An inspection as JSON. A resource that does not exist has the kind `none`.
private struct InspectionReport: Encodable {
    struct Holder: Encodable {
        var id: String
        var node: String
        var count: Int
        var since: String
        var seconds: Double
        var fence: UInt64

        init(_ holder: Inspection.Holder) {
            (id, node, count, fence) = (holder.id, holder.node, holder.count, holder.fence)
            (since, seconds) = (dateText(holder.since), holder.duration.secondsToTheMillisecond)
        }
    }

    struct Waiter: Encodable {
        var id: String
        var node: String
        var count: Int
        var since: String
        var seconds: Double

        init(_ waiter: Inspection.Waiter) {
            (id, node, count) = (waiter.id, waiter.node, waiter.count)
            (since, seconds) = (dateText(waiter.since), waiter.duration.secondsToTheMillisecond)
        }
    }

    var name: String
    var kind = "none"
    var permits = 0
    var available = 0
    var holderCount = 0
    var waiterCount = 0
    var holders: [Holder] = []
    var waiters: [Waiter] = []

    init(name: String, _ found: Inspection?) {
        self.name = name
        guard let found else { return }
        (kind, permits, available) = (found.kind.description, found.permits, found.available)
        (holderCount, waiterCount) = (found.holderCount, found.waiterCount)
        holders = found.holders.map { Holder($0) }
        waiters = found.waiters.map { Waiter($0) }
    }
}

/// An inspection as text.
private struct InspectionText {
    let inspection: Inspection

    var text: String {
        let columns: [TextTable.Column] = [.right("permits"), .right("for"), .left("since")]
        var holders = TextTable([.left("held by")] + columns + [.left("fence"), .left("id")])
        for holder in inspection.holders {
            holders.add([
                holder.node, "\(holder.count)", holder.duration.readable, dateText(holder.since), "\(holder.fence)",
                holder.id,
            ])
        }
        var waiters = TextTable([.left("waiting, next first")] + columns + [.left("id")])
        for waiter in inspection.waiters {
            waiters.add([
                waiter.node, "\(waiter.count)", waiter.duration.readable, dateText(waiter.since), waiter.id,
            ])
        }
        return
            ([headline] + list(holders, inspection.holders.count, of: inspection.holderCount)
            + list(waiters, inspection.waiters.count, of: inspection.waiterCount))
            .joined(separator: "\n")
    }

    private var headline: String {
        let permits =
            if inspection.kind == .mutex {
                ""
            } else if isOpen(available: inspection.available) {
                ", open for all"
            } else if inspection.available > inspection.permits {
                // Signals have added permits to those with which it was created: the items of a buffer, for example.
                ", \(inspection.available) permits available"
            } else {
                ", \(inspection.available) of \(inspection.permits) permits available"
            }
        return
            "\(inspection.name): \(inspection.kind)\(permits), \(inspection.holderCount) holding, \(inspection.waiterCount) waiting"
    }

    private func list(_ table: TextTable, _ shown: Int, of count: Int) -> [String] {
        if shown == 0 { return [] }
        return [""] + table.lines + (count > shown ? ["and \(count - shown) more"] : [])
    }
}

/// Whether a resource admits everybody, as a latch does that has been counted down.
///
/// It has 2^50 permits then, of which those who have passed are subtracted.
func isOpen(available: Int) -> Bool { available >= 1 << 49 }

/// An ISO 8601 date with milliseconds.
///
/// - Parameter microseconds: the time since 1970.
private func dateText(_ microseconds: UInt64) -> String {
    Date(timeIntervalSince1970: Double(microseconds) / 1e6).formatted(.iso8601WithMilliseconds)
}

extension FormatStyle where Self == Date.ISO8601FormatStyle {
    fileprivate static var iso8601WithMilliseconds: Self { Self(includingFractionalSeconds: true) }
}
