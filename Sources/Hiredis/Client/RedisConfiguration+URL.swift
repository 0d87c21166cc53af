#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension RedisConfiguration {
    /// Makes a configuration from a URL.
    ///
    /// - `redis://[user:password@]host[:port][/db]`: plain TCP, port 6379.
    /// - `rediss://…`: TLS, with the certificate and the name of the server verified.
    /// - `unix://[user:password@]/path/to.sock[?db=0]`: a Unix socket.
    /// - `redis-sentinel://[user:password@]host[:port],…/name[/db]`: the master that a majority of
    ///   these sentinels names, port 26379. User and password are those of the master. With
    ///   `?sentinel-password=…`, and `&sentinel-user=…` for another than the default user, the client
    ///   logs in to the sentinels.
    /// - `rediss-sentinel://…`: TLS to the sentinels and to the master.
    /// - `redis-cluster://[user:password@]host[:port],…`: the cluster of these servers, port 6379.
    /// - `rediss-cluster://…`: TLS to all servers of the cluster.
    ///
    /// User and password are percent-encoded. `redis://:password@host` logs in as the server's
    /// default user.
    ///
    /// - Throws: `.invalidArgument`. The message does not repeat the URL, which may contain a
    ///   password.
    public init(url: String) throws(RedisError) {
        func invalid(_ reason: String) -> RedisError {
            RedisError(
                .invalidArgument,
                "the Redis URL \(reason); expected redis://[user:password@]host[:port][/db], rediss://…, unix:///path, "
                    + "redis-sentinel://host[:port],…/name[/db] or redis-cluster://host[:port],…"
            )
        }
        do throws(TopologyURL.Invalid) {
            if let topology = try TopologyURL(url) {
                try self.init(topology)
                return
            }
        } catch {
            throw invalid(error.reason)
        }
        guard let parts = URLComponents(string: url) else { throw invalid("cannot be read") }
        var credentials: Credentials?
        if let password = parts.password, !password.isEmpty {
            credentials = Credentials(username: parts.user.flatMap { $0.isEmpty ? nil : $0 }, password: password)
        } else if parts.user?.isEmpty == false {
            throw invalid("has a user but no password (for the default user write redis://:password@host)")
        }
        var database = ""
        switch parts.scheme?.lowercased() {
        case "redis", "rediss":
            guard let host = parts.host, !host.isEmpty else { throw invalid("has no host") }
            let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
            // URLComponents has no port when the number is too large for an Int.
            let port = parts.port ?? (parts.rangeOfPort?.isEmpty == false ? 0 : 6379)
            guard (1...65535).contains(port) else { throw invalid("has a port that is not between 1 and 65535") }
            self.init(endpoint: .tcp(host: bare, port: port), credentials: credentials)
            if parts.scheme?.lowercased() == "rediss" { tls = RedisTLS() }
            database = String(parts.path.drop { $0 == "/" })
        case "unix", "redis+unix":
            guard parts.host?.isEmpty != false else { throw invalid("has a host before the path of the socket") }
            guard parts.path.count > 1 else { throw invalid("has no socket path") }
            self.init(endpoint: .unixSocket(path: parts.path), credentials: credentials)
        default:
            throw invalid("has no known scheme")
        }
        if let item = parts.queryItems?.first(where: { $0.name == "db" }) { database = item.value ?? "" }
        if !database.isEmpty {
            guard let number = Int(database), number >= 0 else {
                throw invalid("names a database that is not a number from 0")
            }
            self.database = number
        }
    }
}
