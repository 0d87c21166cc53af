import Foundation
import Hiredis
import QueueListen
import RedisDC

/// Reads the state that the dashboard shows. Each read has a maximum cost, whatever the namespace contains, and nothing
/// is read unless somebody looks.
actor DashboardReader {
    /// Resources that are read; those that are waited for and held are inspected.
    static let maxResources = 1000
    static let maxInspected = 30
    /// Holders, and waiters, of one resource.
    static let maxParties = 20
    static let maxMailboxes = 50
    /// Iterations of `SCAN` on each server, each over about a thousand keys.
    static let maxScans = 10
    /// Dead letters of one mailbox.
    static let maxLetters = 20
    /// Devices of one mailbox.
    static let maxDevices = 20

    private let redis: RedisClient
    private let office: PostOffice
    private let coordinator: Coordinator
    private let deadLetterMailboxes: [String]
    private let interval: Duration
    private var latest: (time: ContinuousClock.Instant, text: [UInt8])?
    private var reading: Task<[UInt8], Never>?

    init(
        redis: RedisClient, office: PostOffice, coordinator: Coordinator, deadLetterMailboxes: [String],
        interval: Duration
    ) {
        (self.redis, self.office, self.coordinator) = (redis, office, coordinator)
        (self.deadLetterMailboxes, self.interval) = (deadLetterMailboxes, interval)
    }

    /// Returns the state as JSON. Pages that ask within an interval share one read.
    func snapshot() async -> [UInt8] {
        if let latest, ContinuousClock.now - latest.time < interval { return latest.text }
        if let reading { return await reading.value }
        let task = Task { await self.read().bytes }
        reading = task
        let text = await task.value
        latest = (.now, text)
        reading = nil
        return text
    }

    /// The next snapshot is read, whatever the interval: after a change.
    func forget() { latest = nil }

    private func read() async -> JSON {
        var state: JSON = [
            "time": JSON(Int(Date().timeIntervalSince1970 * 1000)), "namespace": .string(coordinator.namespace),
            "mailNamespace": .string(office.namespace),
        ]
        var faults: [JSON] = []
        do { state = .object((state.members ?? []) + (try await resources().members ?? [])) } catch {
            faults.append(.string("the resources cannot be read: \(error.code)"))
        }
        do { state = .object((state.members ?? []) + (try await mailboxes().members ?? [])) } catch {
            faults.append(.string("the mailboxes cannot be read: \(error)"))
        }
        return state.with(("faults", .array(faults)))
    }

    // MARK: Resources

    private func resources() async throws(RedisDCError) -> JSON {
        let list = try await coordinator.list(limit: Self.maxResources)
        // The list is read in several steps, so a resource may occur twice.
        let found = Dictionary(list.resources.map { ($0.name, $0) }) { $1 }.values.sorted { first, second in
            let (wait, otherWait) = (first.longestWait ?? .zero, second.longestWait ?? .zero)
            let (used, otherUsed) = (first.permits - first.available, second.permits - second.available)
            return (wait, used, second.name) > (otherWait, otherUsed, first.name)
        }
        var (rows, nodes): ([JSON], [String: (holds: Int, waits: Int)]) = ([], [:])
        for (place, resource) in found.prefix(200).enumerated() {
            var row: JSON = [
                "name": .string(resource.name), "kind": .string(resource.kind.description),
                "permits": JSON(resource.permits), "available": JSON(resource.available),
                "waiting": JSON(resource.waiters),
            ]
            row = row.with(("longestWait", resource.longestWait.map { JSON($0.wholeMilliseconds) }))
            if place < Self.maxInspected,
                let inspection = try await coordinator.inspect(resource.name, limit: Self.maxParties)
            {
                for holder in inspection.holders { nodes[holder.node, default: (0, 0)].holds += holder.count }
                for waiter in inspection.waiters { nodes[waiter.node, default: (0, 0)].waits += 1 }
                row = row.with(
                    ("holderCount", JSON(inspection.holderCount)),
                    ("holders", .array(inspection.holders.map(Self.row))),
                    ("waiters", .array(inspection.waiters.map(Self.row))))
            }
            rows.append(row)
        }
        let waitedFor = found.prefix(Self.maxInspected).filter { $0.waiters > 0 }.map(\.name)
        let deadlocks = try await coordinator.deadlocks(among: waitedFor, limit: Self.maxParties)
        return [
            "sessions": JSON(list.sessions), "resources": .array(rows),
            "isEveryResource": .bool(list.isComplete && rows.count == found.count),
            "damaged": JSON(list.damaged.count),
            "nodes": .array(
                nodes.sorted { $0.key < $1.key }.prefix(100).map { node, counts in
                    ["name": .string(node), "holds": JSON(counts.holds), "waits": JSON(counts.waits)]
                }),
            "deadlocks": .array(deadlocks.prefix(20).map { .array($0.links.map(Self.row)) }),
        ]
    }

    private static func row(_ holder: Inspection.Holder) -> JSON {
        // A fence may be beyond the integers that JavaScript has.
        [
            "id": .string(holder.id), "node": .string(holder.node), "count": JSON(holder.count),
            "fence": .string("\(holder.fence)"), "age": JSON(holder.duration.wholeMilliseconds),
        ]
    }

    private static func row(_ waiter: Inspection.Waiter) -> JSON {
        [
            "id": .string(waiter.id), "node": .string(waiter.node), "count": JSON(waiter.count),
            "age": JSON(waiter.duration.wholeMilliseconds),
        ]
    }

    private static func row(_ link: Deadlock.Link) -> JSON {
        [
            "resource": .string(link.name), "waiter": .string(link.waiterNode), "holder": .string(link.holderNode),
            "holderID": .string(link.holder),
        ]
    }

    // MARK: Mailboxes

    private func mailboxes() async throws -> JSON {
        let (found, isComplete) = try await names()
        var rows: [JSON] = []
        for name in found {
            guard let mailbox = try? office.mailbox(name), let inspection = try await mailbox.inspect() else {
                continue
            }
            let devices = inspection.devices.prefix(Self.maxDevices).map { device -> JSON in
                [
                    "name": .string(device.name),
                    "lag": JSON(max(0, inspection.last - max(device.acknowledged.index, inspection.first - 1))),
                    "seen": JSON(Int(device.lastSeen.timeIntervalSince1970 * 1000)),
                ]
            }
            rows.append([
                "name": .string(name), "count": JSON(inspection.count), "bytes": JSON(inspection.bytes),
                "listening": JSON(inspection.listeningProcesses), "devices": .array(devices),
                "deviceCount": JSON(inspection.devices.count),
            ])
        }
        var letters: [JSON] = []
        for name in deadLetterMailboxes { letters.append(try await deadLetters(of: name)) }
        return [
            "mailboxes": .array(rows), "isEveryMailbox": .bool(isComplete), "deadLetters": .array(letters),
        ]
    }

    /// Returns names of mailboxes, and whether these are all.
    private func names() async throws(RedisError) -> ([String], Bool) {
        var escaped = ""
        for scalar in office.namespace.unicodeScalars {
            if "*?[]\\".unicodeScalars.contains(scalar) { escaped.append("\\") }
            escaped.unicodeScalars.append(scalar)
        }
        // By bytes: a mailbox's name may begin with a combining mark, which is one character with the colon before it.
        let (prefix, marker) = ("ql:{\(office.namespace):".utf8, "}:box:".utf8)
        let pattern = "ql:{\(escaped):*}:box:*"
        var (names, isComplete): (Set<[UInt8]>, Bool) = ([], true)
        for master in try await redis.masters() {
            var cursor = "0"
            for scan in 1...Self.maxScans {
                let reply = try await master.send(
                    ["SCAN", .string(cursor), "MATCH", .string(pattern), "COUNT", "1000"])
                guard let parts = reply.array, parts.count == 2, let next = parts[0].string else { break }
                for key in parts[1].array ?? [] {
                    guard let key = key.bytes, key.starts(with: prefix) else { continue }
                    let rest = key.dropFirst(prefix.count).drop { $0 != marker.first }
                    if rest.starts(with: marker) { names.insert(Array(rest.dropFirst(marker.count))) }
                }
                cursor = next
                if cursor == "0" { break }
                if scan == Self.maxScans || names.count >= Self.maxMailboxes { isComplete = false }
                if names.count >= Self.maxMailboxes { break }
            }
        }
        if names.count > Self.maxMailboxes { isComplete = false }
        return (
            names.map { String(decoding: $0, as: UTF8.self) }.sorted().prefix(Self.maxMailboxes).map { $0 }, isComplete
        )
    }

    /// The oldest dead letters of a mailbox, without their contents.
    private func deadLetters(of name: String) async throws(QueueListenError) -> JSON {
        let mailbox = try office.mailbox(name)
        let inspection = try await mailbox.inspect()
        let letters = try await DeadLetters(mailbox).oldest(Self.maxLetters, inspection)
        return [
            "mailbox": .string(name), "count": JSON(letters.count),
            "letters": .array(
                letters.messages.map { message in
                    let row: JSON = [
                        "index": JSON(message.index), "bytes": JSON(message.body.count),
                        "sent": JSON(Int(message.sent.timeIntervalSince1970 * 1000)),
                    ]
                    return row.with(
                        ("type", message.type.map { .string($0) }),
                        ("from", message.headers["dead-letter-mailbox"].map { .string($0) }))
                }),
        ]
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int {
        Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
    }
}
