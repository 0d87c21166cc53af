/// The hosts by which the servers of a cluster want to be addressed, by the id of the server.
///
/// `CLUSTER NODES` has the IP address and the announced name of each server, but not which of them
/// clients are to use (`cluster-preferred-endpoint-type`, Redis 7.0). `CLUSTER SLOTS` has only that one.
struct PreferredHosts: Equatable {
    private(set) var hosts: [String: String] = [:]

    /// Whether a reply to `CLUSTER NODES` contains the name of a server. Without names, the preferred
    /// hosts are the addresses.
    static func areNeeded(for nodes: String) -> Bool {
        nodes.split(whereSeparator: \.isNewline).contains { line in
            // host:port@busport,hostname[,auxiliary=value]
            let address = line.split(separator: " ").dropFirst().first ?? ""
            let name = address.split(separator: ",", omittingEmptySubsequences: false).dropFirst().first ?? ""
            return !name.isEmpty
        }
    }

    init() {}

    /// Reads the reply to `CLUSTER SLOTS`.
    init(slots reply: RESPValue) {
        for range in reply.array ?? [] {
            for server in range.array?.dropFirst(2) ?? [] {
                guard let parts = server.array, parts.count > 2, let id = parts[2].string else { continue }
                // A null host is that of the server that was asked. "?" stands for a preferred name that is missing.
                let host = parts[0].isNull ? "" : parts[0].string ?? "?"
                if host != "?" { hosts[id] = host }
            }
        }
    }

    subscript(id: Substring) -> String? { hosts[String(id)] }
}
