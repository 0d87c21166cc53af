/// The reason why a server of a cluster has not run a command.
enum ClusterRefusal: Equatable {
    /// Another server serves the slot.
    case moved(slot: Int, host: String, port: Int)
    /// The slot is being moved, and the key is not on this server (any more).
    case ask(host: String, port: Int)
    /// The command can succeed here in a moment.
    case notNow

    /// Reads the server's error; `nil` for an error that is not about the state of the cluster.
    init?(_ message: String) {
        let words = message.split(separator: " ")
        switch words.first {
        case "MOVED", "ASK":
            guard words.count >= 3, let slot = Int(words[1]), (0..<HashSlot.count).contains(slot),
                let colon = words[2].lastIndex(of: ":"), let port = Int(words[2][words[2].index(after: colon)...])
            else { return nil }
            let host = String(words[2][..<colon])
            self = words[0] == "MOVED" ? .moved(slot: slot, host: host, port: port) : .ask(host: host, port: port)
        case "TRYAGAIN", "CLUSTERDOWN", "LOADING", "NOREPLICAS", "MASTERDOWN": self = .notNow
        default: return nil
        }
    }
}
