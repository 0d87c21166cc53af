// Who waits for whom in a circle.

/// Processes that wait for one another in a circle.
public struct Deadlock: Sendable, Hashable {
    /// One waits for what another holds.
    public struct Link: Sendable, Hashable {
        /// What is waited for.
        public var name: String
        /// The claims of both: the session, a colon, and the number of the request.
        public var waiter: String
        public var holder: String
        /// Host, process id and name of both programs.
        public var waiterNode: String
        public var holderNode: String

        var waiterSession: Substring { waiter.prefix { $0 != ":" } }
        var holderSession: Substring { holder.prefix { $0 != ":" } }
    }

    /// Each one's holder is the next one's waiter, and the last one's holder the first one's waiter.
    public var links: [Link]
}

extension Coordinator {
    /// Looks for processes that wait for one another in a circle, over the whole namespace.
    ///
    /// What is found may be harmless: tasks of one process are not told apart, and of a semaphore another holder may give
    /// back. So take it as a place to look at. What changes meanwhile is not reported: it looks twice. The cost is
    /// proportional to all that is there; a holder or waiter beyond the first 1,000 of a name is not seen.
    public func deadlocks() async throws(RedisDCError) -> [Deadlock] {
        let before = try await waits()
        if before.isEmpty { return [] }
        let now = Set(try await waits())
        return Deadlock.all(in: before.filter(now.contains))
    }

    private func waits() async throws(RedisDCError) -> [Deadlock.Link] {
        var links: [Deadlock.Link] = []
        for resource in try await list().resources where resource.waiters > 0 {
            guard let inspection = try await inspect(resource.name, limit: 1000) else { continue }
            for waiter in inspection.waiters {
                for holder in inspection.holders where holder.session != waiter.session {
                    links.append(
                        Deadlock.Link(
                            name: resource.name, waiter: waiter.id, holder: holder.id, waiterNode: waiter.node,
                            holderNode: holder.node))
                }
            }
        }
        return links
    }
}

extension Deadlock {
    /// Circles that have no session in common: of each knot, one.
    static func all(in links: [Link]) -> [Deadlock] {
        let next = Dictionary(grouping: links, by: \.waiterSession)
        var isOver: Set<Substring> = []
        var found: [Deadlock] = []
        for start in next.keys.sorted() where !isOver.contains(start) {
            // A walk in depth; the links that lead from its beginning to where it is.
            var path: [Link] = []
            var choices = [next[start] ?? []]
            var onPath: Set<Substring> = [start]
            while !choices.isEmpty {
                guard let link = choices[choices.count - 1].popLast() else {
                    choices.removeLast()
                    let left = path.popLast()?.holderSession ?? start
                    onPath.remove(left)
                    isOver.insert(left)
                    continue
                }
                let session = link.holderSession
                if onPath.contains(session) {
                    let circle = (path + [link]).drop { $0.waiterSession != session }
                    found.append(Deadlock(links: Array(circle)))
                    isOver.formUnion(onPath)
                    break
                }
                if isOver.contains(session) { continue }
                path.append(link)
                onPath.insert(session)
                choices.append(next[session] ?? [])
            }
        }
        return found
    }
}
