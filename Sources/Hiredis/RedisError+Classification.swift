// The one classification of errors. The layers above use it instead of lists of codes of their own.

extension RedisError {
    /// Whether the same request may succeed in a moment: the connection broke or could not be made,
    /// no reply came in time, or the server is loading, busy, without its master, or cannot write
    /// for now.
    ///
    /// Whether it is safe to send the request again is another question: see ``mayHaveRun``.
    ///
    /// `.outOfMemory` is not transient. Memory becomes free when data are deleted, not by waiting,
    /// and clients that keep repeating their writes load a server that is short of memory already.
    /// `.tooManyLanes` is not transient either: it is a limit of this client, and lasts for as long
    /// as its other blocking commands wait.
    public var isTransient: Bool {
        switch code {
        case .connectionLost, .timedOut, .cannotConnect, .serverNotReady, .readOnly: true
        default: false
        }
    }

    /// Whether a failed attempt to connect fails in the same way until someone changes the
    /// configuration, the user's rights or the server. Callers that wait for a connection then fail
    /// immediately, while the client keeps trying.
    var isPermanent: Bool {
        switch code {
        case .authenticationFailed, .unsupportedServer, .invalidArgument, .notPermitted: true
        default: false
        }
    }
}
