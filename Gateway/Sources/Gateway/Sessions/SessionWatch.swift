import NIOConcurrencyHelpers

/// The streams and polls of this node, which end with their session.
final class SessionWatch: Sendable {
    /// How a session has ended.
    enum End: Sendable {
        /// By a logout, or at its time.
        case ended
        /// By a newer login of the same user and device.
        case replaced

        /// - Parameter problem: what the check of a session has found; `nil` if it does not say that the session has ended.
        init?(_ problem: Problem) {
            switch problem.kind {
            case .unknownSession: self = .ended
            case .loggedInElsewhere: self = .replaced
            default: return nil
            }
        }
    }

    /// A stream or poll: it is watched until it is released.
    ///
    /// It is made before the session is verified, so that no end between the two is missed.
    final class Entry: Sendable {
        let signal = EndSignal<End>()
        private let watch: SessionWatch
        private let session: SessionID
        private let id: Int

        fileprivate init(_ watch: SessionWatch, _ session: SessionID) {
            (self.watch, self.session) = (watch, session)
            id = watch.add(signal, session)
        }

        deinit { watch.remove(id, session) }
    }

    private struct State {
        var lastID = 0
        var signals: [SessionID: [Int: EndSignal<End>]] = [:]
    }

    private let state = NIOLockedValueBox(State())

    /// The sessions that have streams or polls here.
    var sessions: [SessionID] { state.withLockedValue { Array($0.signals.keys) } }

    func contains(_ session: SessionID) -> Bool { state.withLockedValue { $0.signals[session] != nil } }

    func enter(_ session: SessionID) -> Entry { Entry(self, session) }

    /// Ends the streams and polls of a session.
    func end(_ session: SessionID, _ end: End) {
        let signals = state.withLockedValue { $0.signals[session]?.values.map { $0 } ?? [] }
        for signal in signals { signal.end(end) }
    }

    private func add(_ signal: EndSignal<End>, _ session: SessionID) -> Int {
        state.withLockedValue { state in
            state.lastID += 1
            state.signals[session, default: [:]][state.lastID] = signal
            return state.lastID
        }
    }

    private func remove(_ id: Int, _ session: SessionID) {
        state.withLockedValue { state in
            state.signals[session]?[id] = nil
            if state.signals[session]?.isEmpty == true { state.signals[session] = nil }
        }
    }
}
