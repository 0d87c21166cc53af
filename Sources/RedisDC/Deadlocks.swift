// Finds processes that wait for one another in a circle, by reading all holders and waiters twice.

/// A circle of processes, each of which waits for a resource that the next one holds.
public struct Deadlock: Sendable, Hashable {
    /// A process that waits for a resource that another process holds.
    public struct Link: Sendable, Hashable {
        /// The name of the resource.
        public var name: String
        /// The waiter's claim: its session, a colon, and the number of the request.
        public var waiter: String
        /// The holder's claim: its session, a colon, and the number of the request.
        public var holder: String
        /// The host, process id and program name of the waiter.
        public var waiterNode: String
        /// The host, process id and program name of the holder.
        public var holderNode: String

        var waiterSession: Substring { waiter.prefix { $0 != ":" } }
        var holderSession: Substring { holder.prefix { $0 != ":" } }
    }

    /// The circle: the holder of each link is the waiter of the next, and the holder of the last is
    /// the waiter of the first.
    public var links: [Link]
}

extension Coordinator {
    /// Returns the circles of processes in the namespace that wait for one another.
    ///
    /// A circle may be harmless: the tasks of one process are not told apart, and another holder of
    /// a semaphore may release a permit. Treat it as a hint where to look. A circle that changes
    /// while it is read is not reported, because everything is read twice. The cost is proportional
    /// to the number of resources, holders and waiters; holders and waiters beyond the first 1,000
    /// of a resource are ignored.
    ///
    /// - Throws: what ``inspect(_:limit:)`` throws.
    public func deadlocks() async throws(RedisDCError) -> [Deadlock] {
        let before = try await waits(for: try await namesWaitedFor())
        if before.isEmpty { return [] }
        let now = Set(try await waits(for: try await namesWaitedFor()))
        return Deadlock.all(in: before.filter(now.contains))
    }

    /// Returns the circles of processes that wait for one another for some resources. The cost is
    /// that of inspecting each of them twice. See ``deadlocks()``.
    ///
    /// - Parameters:
    ///   - names: the resources to look at.
    ///   - limit: the maximum number of holders, and of waiters, of each resource.
    /// - Throws: what ``inspect(_:limit:)`` throws.
    public func deadlocks(among names: [String], limit: Int = 1000) async throws(RedisDCError) -> [Deadlock] {
        let before = try await waits(for: names, limit: limit)
        if before.isEmpty { return [] }
        let now = Set(try await waits(for: names, limit: limit))
        return Deadlock.all(in: before.filter(now.contains))
    }

    private func namesWaitedFor() async throws(RedisDCError) -> [String] {
        try await list().resources.filter { $0.waiters > 0 }.map(\.name)
    }

    private func waits(for names: [String], limit: Int = 1000) async throws(RedisDCError) -> [Deadlock.Link] {
        var links: [Deadlock.Link] = []
        for name in names {
            guard let inspection = try await inspect(name, limit: limit) else { continue }
            for waiter in inspection.waiters {
                for holder in inspection.holders where holder.session != waiter.session {
                    links.append(
                        Deadlock.Link(
                            name: name, waiter: waiter.id, holder: holder.id, waiterNode: waiter.node,
                            holderNode: holder.node))
                }
            }
        }
        return links
    }
}

extension Deadlock {
    /// Returns circles that share no session: one for each group of entangled ones.
    static func all(in links: [Link]) -> [Deadlock] {
        let next = Dictionary(grouping: links, by: \.waiterSession)
        var isDone: Set<Substring> = []
        var found: [Deadlock] = []
        for start in next.keys.sorted() where !isDone.contains(start) {
            // A depth-first search: `path` has the links from `start` to the current session.
            var path: [Link] = []
            var choices = [next[start] ?? []]
            var onPath: Set<Substring> = [start]
            while !choices.isEmpty {
                guard let link = choices[choices.count - 1].popLast() else {
                    choices.removeLast()
                    let left = path.popLast()?.holderSession ?? start
                    onPath.remove(left)
                    isDone.insert(left)
                    continue
                }
                let session = link.holderSession
                if onPath.contains(session) {
                    let circle = (path + [link]).drop { $0.waiterSession != session }
                    found.append(Deadlock(links: Array(circle)))
                    isDone.formUnion(onPath)
                    break
                }
                if isDone.contains(session) { continue }
                path.append(link)
                onPath.insert(session)
                choices.append(next[session] ?? [])
            }
        }
        return found
    }
}
