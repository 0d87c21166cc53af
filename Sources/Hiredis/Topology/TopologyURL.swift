/// The parts of a URL with several addresses: `scheme://[user:password@]host[:port],…[/path][?query]`.
struct TopologyURL {
    var scheme: String
    var credentials: RedisConfiguration.Credentials?
    var addresses: [RedisConfiguration.Endpoint] = []
    var path: [String] = []
    var query: [String: String] = [:]

    /// - Returns: nil when the scheme is not one of those with several addresses.
    /// - Throws: the reason why the URL cannot be used, without its contents.
    init?(_ url: String) throws(Invalid) {
        guard let schemeEnd = url.firstRange(of: "://") else { return nil }
        scheme = url[..<schemeEnd.lowerBound].lowercased()
        guard let defaultPort = Self.defaultPorts[scheme] else { return nil }
        var rest = url[schemeEnd.upperBound...]
        if let mark = rest.firstIndex(of: "?") {
            query = try Self.query(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        let authority = rest.prefix { $0 != "/" }
        path = try rest.dropFirst(authority.count).split(separator: "/").map { part throws(Invalid) in
            try Self.decoded(part)
        }
        var hosts = authority
        if let at = authority.lastIndex(of: "@") {
            credentials = try Self.credentials(authority[..<at])
            hosts = authority[authority.index(after: at)...]
        }
        for host in hosts.split(separator: ",", omittingEmptySubsequences: false) {
            addresses.append(try Self.address(host, defaultPort: defaultPort))
        }
    }

    struct Invalid: Error {
        var reason: String
    }

    private static let defaultPorts = [
        "redis-sentinel": 26379, "rediss-sentinel": 26379, "redis-cluster": 6379, "rediss-cluster": 6379,
    ]

    var isCluster: Bool { scheme.hasSuffix("-cluster") }

    var isTLS: Bool { scheme.hasPrefix("rediss") }

    private static func decoded(_ text: Substring) throws(Invalid) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let digits = String(rest.prefix(2)), digits.allSatisfy(\.isHexDigit),
                let value = UInt8(digits, radix: 16)
            else { throw Invalid(reason: "has a % without two hexadecimal digits") }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self) else {
            throw Invalid(reason: "contains an encoded text that is not UTF-8")
        }
        return decoded
    }

    private static func credentials(_ text: Substring) throws(Invalid) -> RedisConfiguration.Credentials? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let user = try decoded(parts[0])
        guard parts.count == 2, !parts[1].isEmpty else {
            if user.isEmpty { return nil }
            throw Invalid(reason: "has a user but no password (for the default user write scheme://:password@host)")
        }
        return .init(username: user.isEmpty ? nil : user, password: try decoded(parts[1]))
    }

    private static func address(
        _ text: Substring, defaultPort: Int
    ) throws(Invalid) -> RedisConfiguration.Endpoint {
        var (host, port) = (text, ""[...])
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            port = text[text.index(after: end)...]
        } else if let colon = text.firstIndex(of: ":") {
            (host, port) = (text[..<colon], text[colon...])
        }
        let name = try decoded(host)
        if name.isEmpty { throw Invalid(reason: "has an address without a host") }
        if port.isEmpty { return .tcp(host: name, port: defaultPort) }
        guard port.hasPrefix(":"), let number = Int(port.dropFirst()), (1...65535).contains(number) else {
            throw Invalid(reason: "has a port that is not between 1 and 65535")
        }
        return .tcp(host: name, port: number)
    }

    private static func query(_ text: Substring) throws(Invalid) -> [String: String] {
        var query: [String: String] = [:]
        for item in text.split(separator: "&") {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            query[try decoded(parts[0])] = parts.count == 2 ? try decoded(parts[1]) : ""
        }
        return query
    }
}

extension RedisConfiguration {
    /// Makes a configuration from a URL with several addresses.
    init(_ url: TopologyURL) throws(TopologyURL.Invalid) {
        if url.isCluster {
            guard url.path.isEmpty else { throw .init(reason: "has a database, but a cluster has only one") }
            guard url.query.isEmpty else { throw .init(reason: "has a parameter") }
            self.init(cluster: url.addresses, credentials: url.credentials, tls: url.isTLS ? RedisTLS() : nil)
            return
        }
        let known: Set<String> = ["sentinel-user", "sentinel-password"]
        if url.query.keys.contains(where: { !known.contains($0) }) {
            throw .init(reason: "has a parameter other than sentinel-user and sentinel-password")
        }
        guard let name = url.path.first else { throw .init(reason: "does not end with the name of the master") }
        guard url.path.count <= 2 else {
            throw .init(reason: "has more than a name and a database behind the addresses")
        }
        self.init(
            master: name, sentinels: url.addresses, credentials: url.credentials, tls: url.isTLS ? RedisTLS() : nil)
        if let password = url.query["sentinel-password"] {
            sentinelCredentials = Credentials(username: url.query["sentinel-user"], password: password)
        } else if url.query["sentinel-user"] != nil {
            throw .init(reason: "has a sentinel-user but no sentinel-password")
        }
        if url.path.count == 2 {
            guard let number = Int(url.path[1]), number >= 0 else {
                throw .init(reason: "names a database that is not a number from 0")
            }
            database = number
        }
    }
}
