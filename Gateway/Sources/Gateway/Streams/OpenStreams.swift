import NIOConcurrencyHelpers

/// Counts the open streams of this node, or its polls, and limits those of one session.
final class OpenStreams: Sendable {
    private let counts = NIOLockedValueBox<[SessionID: Int]>([:])
    private let limit: Limit
    private let maxOfSession: Int

    init(_ limit: Limit, maxOfSession: Int) { (self.limit, self.maxOfSession) = (limit, maxOfSession) }

    var count: Int { counts.withLockedValue { $0.values.reduce(0, +) } }

    /// A stream that counts until it is closed or released: the body of a response is never written if its client has
    /// gone before.
    final class Place: Sendable {
        private let streams: OpenStreams
        private let id: SessionID
        private let isOpen = NIOLockedValueBox(true)

        fileprivate init(streams: OpenStreams, id: SessionID) { (self.streams, self.id) = (streams, id) }

        deinit { close() }

        func close() {
            let wasOpen = isOpen.withLockedValue { isOpen in
                defer { isOpen = false }
                return isOpen
            }
            if wasOpen { streams.closed(id) }
        }
    }

    private func closed(_ id: SessionID) {
        counts.withLockedValue { counts in
            let rest = (counts[id] ?? 1) - 1
            counts[id] = rest > 0 ? rest : nil
        }
    }

    /// Counts another stream.
    ///
    /// - Throws: `too-many-streams`.
    func open(_ session: Session) throws(Problem) -> Place {
        let isOpen = counts.withLockedValue { counts in
            let count = counts[session.id] ?? 0
            if count < maxOfSession { counts[session.id] = count + 1 }
            return count < maxOfSession
        }
        guard isOpen else {
            limit.count()
            throw Problem(.tooManyStreams, "the session has \(maxOfSession) open \(limit.rawValue) at this node")
        }
        return Place(streams: self, id: session.id)
    }
}
