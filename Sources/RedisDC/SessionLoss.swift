/// Why a session was lost.
public enum SessionLoss: Sendable, Hashable, CustomStringConvertible {
    /// Its heartbeats did not reach Redis in time.
    case expired
    /// Redis does not know the session any more: its data was deleted or rolled back.
    case dataLost

    /// The reason in words.
    public var description: String {
        switch self {
        case .expired: "its heartbeats did not reach Redis in time"
        case .dataLost: "Redis has lost its data"
        }
    }
}
