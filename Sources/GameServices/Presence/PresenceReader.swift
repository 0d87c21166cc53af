// Reads a bucket: changes after a position, and snapshots in pages.
import CoordinationBase
import Hiredis

/// Reads a bucket, without a session.
struct PresenceReader: Sendable {
    let redis: any Redis
    let keys: PresenceKeys
    /// The bounds of one reply: number, and bytes.
    var pageSize = (count: 512, bytes: 256 << 10)

    /// The changes after a position.
    enum Changes: Sendable {
        /// The next changes in order. After the last of them, `more` says whether further ones follow.
        case changes([LoggedChange], more: Bool)
        /// Redis no longer knows them, or has lost the position.
        case gap
    }

    private func run(_ script: RedisScript, _ argument: [UInt8]) async throws(GameServiceError) -> [RESPValue] {
        var bounds: [UInt8] = []
        bounds.append(number: pageSize.count)
        bounds.append(number: pageSize.bytes)
        let reply: RESPValue
        do throws(RedisError) {
            reply = try await redis.script(
                script, keys: keys.all, arguments: ["", "", .bytes(argument), .bytes(bounds)])
        } catch { throw GameServiceError(error) }
        guard let parts = reply.array, !parts.isEmpty else { throw GameServiceError(unexpected: reply) }
        return parts
    }

    /// Reads one reply of the changes after a position.
    func changes(after position: PresencePosition) async throws(GameServiceError) -> Changes {
        var argument: [UInt8] = []
        argument.append(position: position)
        let parts = try await run(PresenceScripts.read, argument)
        if parts[0].string == "gap" { return .gap }
        guard parts.count == 3, let more = parts[1].integer, let elements = parts[2].array else {
            throw GameServiceError(unexpected: .array(parts))
        }
        var changes: [LoggedChange] = []
        for element in elements {
            let version = position.version + changes.count + 1
            guard let change = element.bytes.flatMap({ LoggedChange($0, version: version) }) else {
                throw GameServiceError(unexpected: element)
            }
            changes.append(change)
        }
        return .changes(changes, more: more == 1)
    }

    // MARK: Snapshots

    private struct Page {
        var position: PresencePosition
        var objects: [PresenceObject]
        var more: Bool
    }

    /// Where a page begins.
    private enum PageStart {
        case at(String)
        case after(String)

        var argument: [UInt8] {
            switch self {
            case .at(let key): Array("0\(key)".utf8)
            case .after(let key): Array("1\(key)".utf8)
            }
        }
    }

    private func page(_ start: PageStart) async throws(GameServiceError) -> Page? {
        let parts = try await run(PresenceScripts.page, start.argument)
        if parts[0].string == "none" { return nil }
        guard parts.count == 4, let bytes = parts[1].bytes, let more = parts[2].integer, let found = parts[3].array
        else { throw GameServiceError(unexpected: .array(parts)) }
        var reader = PresenceBytes(bytes)
        guard let position = reader.position(), found.count % 2 == 0 else {
            throw GameServiceError(unexpected: .array(parts))
        }
        var page = Page(position: position, objects: [], more: more == 1)
        for place in stride(from: 0, to: found.count, by: 2) {
            guard let key = found[place].string, let record = found[place + 1].bytes,
                let object = PresenceObject(key: key, record: record)
            else { throw GameServiceError(unexpected: found[place]) }
            page.objects.append(object)
        }
        return page
    }

    /// Reads one object.
    func object(_ key: String) async throws(GameServiceError) -> PresenceObject? {
        var reader = self
        reader.pageSize = (count: 1, bytes: 1)
        return try await reader.page(.at(key))?.objects.first { $0.key == key }
    }

    /// Reads all objects as they were at one version.
    ///
    /// - Throws: `.busy` if the log never reached from the first page to the last one.
    func snapshot() async throws(GameServiceError) -> PresenceSnapshot {
        for _ in 0..<8 {
            if let snapshot = try await trySnapshot() { return snapshot }
        }
        throw GameServiceError(
            .busy, "the bucket changes too fast for a snapshot: try again, or raise maxLoggedChanges")
    }

    /// Returns `nil` if the pages cannot be brought to one version.
    ///
    /// The pages are of different versions. The changes since the first one bring all of them to the
    /// same version. They also prove that the pages are of one history: a failover in between may
    /// have lost what a page contained.
    private func trySnapshot() async throws(GameServiceError) -> PresenceSnapshot? {
        guard let first = try await page(.at("")) else {
            return PresenceSnapshot(objects: [], position: PresencePosition(version: 0, epoch: 0, tag: 0))
        }
        guard first.more else {
            return PresenceSnapshot(objects: first.objects, position: first.position)
        }
        var merge = SnapshotMerge(at: first.position)
        var page = first
        while true {
            merge.add(page.objects, at: page.position)
            guard page.more, let last = page.objects.last else { break }
            guard let next = try await self.page(.after(last.key)) else { return nil }
            page = next
        }
        while true {
            guard case .changes(let changes, let more) = try await self.changes(after: merge.position) else {
                return nil
            }
            for change in changes { merge.apply(change) }
            if !more { return merge.snapshot }
        }
    }
}
