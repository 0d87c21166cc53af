// The notifications of losses in a history.

/// The notifications that the processes of a run have received, by process.
///
/// A loss counts as announced when the process that it touches was notified within ``window`` afterwards: a process
/// notices a loss at its first contact with the new master, or by its own clock when its session has expired.
struct Announcements {
    /// Whether a loss was announced to those whom it touches.
    enum Notice {
        case given
        /// The process was killed before it could be notified, while others were.
        case impossible
        case missing
    }

    /// 30 s: the longest outage for which a notification is assigned to what happened before it.
    static let window: UInt64 = 30_000_000_000

    private var claims: [Claim: UInt64] = [:]
    /// When processes were notified of a loss of data or of their session. A process whose session has expired during
    /// an outage begins another one, and does not compare what it knew with what Redis has.
    private var losses: [Int: [UInt64]] = [:]
    /// When any process or reader was notified.
    private var all: [UInt64] = []
    /// When processes were killed.
    private(set) var kills: [Int: UInt64] = [:]

    struct Claim: Hashable {
        var process: Int
        var operation: Int
    }

    init(_ events: [Event]) {
        for event in events {
            switch event.kind {
            case .lost:
                let claim = Claim(process: event.process, operation: event.operation ?? 0)
                claims[claim] = claims[claim] ?? event.time
                all.append(event.time)
            case .dataLost, .sessionLost:
                losses[event.process, default: []].append(event.time)
                all.append(event.time)
            case .gap: all.append(event.time)
            case .killed: kills[event.process] = event.time
            default: break
            }
        }
    }

    /// Whether the holder of a claim was notified that it is lost, after a time.
    func notice(of claim: Claim, after time: UInt64) -> Notice {
        if let lost = claims[claim], Self.follows(lost, time) { return .given }
        return killed(claim.process, after: time)
    }

    /// Whether a process was notified of a loss of data or of its session, after a time.
    func notice(to process: Int, after time: UInt64) -> Notice {
        if losses[process, default: []].contains(where: { Self.follows($0, time) }) { return .given }
        return killed(process, after: time)
    }

    /// Whether any process or reader was notified of any loss shortly before or after a time.
    func hasAny(around time: UInt64) -> Bool {
        all.contains { Self.follows($0, time) || Self.follows(time, $0) }
    }

    private func killed(_ process: Int, after time: UInt64) -> Notice {
        guard let kill = kills[process], Self.follows(kill, time), hasAny(around: kill) else { return .missing }
        return .impossible
    }

    static func follows(_ later: UInt64, _ time: UInt64) -> Bool { later >= time && later - time <= window }
}
