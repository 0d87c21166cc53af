import Metrics

/// A limit of what one client can cost a node. The metric `gateway_refused` counts how often each was reached.
enum Limit: String, Sendable {
    case frames, fragments
    case authenticationBytes = "authentication_bytes"
    case connections
    case connectionsOfAddress = "connections_of_address"
    case bodyBytesInFlight = "body_bytes_in_flight"
    case bodyBytesOfSession = "body_bytes_of_session"
    case loginBodyBytes = "login_body_bytes"
    case polls, streams

    /// Counts that a client has reached the limit.
    func count() { Counter(label: "gateway_refused", dimensions: [("limit", rawValue)]).increment() }
}
