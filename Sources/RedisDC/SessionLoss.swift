/// The reason for the loss of a session.
public enum SessionLoss: Sendable, Hashable, CustomStringConvertible {
    /// Its heartbeats did not reach Redis in time.
    case expired
    /// Redis no longer knows the session: its data was deleted or rolled back.
    case dataLost

    /// The reason in words.
    public var description: String {
        switch self {
        case .expired: "its heartbeats did not reach Redis in time"
        case .dataLost: "Redis has lost its data"
        }
    }
}
