/// The text of a server's configuration file.
struct ServerConfigFile {
    let configuration: LocalRedis.Configuration
    let endpoints: ServerEndpoints
    let directory: String
    /// Whether the server knows `enable-debug-command` (Redis 7, Valkey). Older servers do not
    /// start with this directive.
    let allowsDebug: Bool

    var text: String {
        var lines = [
            "bind 127.0.0.1",
            "port \(self.endpoints.port)",
            "unixsocket \(Self.quoted(self.endpoints.socketPath))",
            "unixsocketperm 700",
            "daemonize no",
            "dir \(Self.quoted(self.directory))",
        ]
        switch self.configuration.kind {
        case .dataServer: lines += self.dataServerLines
        case .sentinel: break
        }
        if let tls = self.configuration.tls, let port = self.endpoints.tlsPort {
            lines += [
                "tls-port \(port)",
                "tls-cert-file \(Self.quoted(tls.serverCertificate))",
                "tls-key-file \(Self.quoted(tls.serverKey))",
                "tls-ca-cert-file \(Self.quoted(tls.authority))",
                "tls-auth-clients optional",
            ]
        }
        if let password = self.configuration.password { lines.append("requirepass \(Self.quoted(password))") }
        lines += self.configuration.aclUsers.map { "user \($0)" }
        lines += self.configuration.extra
        return lines.joined(separator: "\n") + "\n"
    }

    private var dataServerLines: [String] {
        var lines: [String] = []
        if self.allowsDebug { lines.append("enable-debug-command local") }
        lines += self.persistence
        return lines
    }

    private var persistence: [String] {
        switch self.configuration.persistence {
        case .none: ["save \"\"", "appendonly no"]
        case .appendOnly(let fsync): ["save \"\"", "appendonly yes", "appendfsync \(fsync.rawValue)"]
        // A save point that is never reached: a server saves on SIGTERM only if it has a save point.
        case .snapshot: ["save 2000000000 2000000000", "appendonly no"]
        }
    }

    /// Returns a value in double quotes, with non-printable and non-ASCII bytes as `\xHH`.
    static func quoted(_ value: String) -> String {
        let digits = Array("0123456789abcdef")
        let body = value.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): "\\\(Character(UnicodeScalar(byte)))"
            case 0x20...0x7e: String(Character(UnicodeScalar(byte)))
            default: "\\x\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return "\"\(body.joined())\""
    }
}

/// The role in which the server program is started.
enum ServerKind: Sendable {
    /// A server that holds data.
    case dataServer
    /// A sentinel.
    case sentinel
}

/// The addresses on which a server listens.
struct ServerEndpoints: Sendable {
    let port: Int
    let tlsPort: Int?
    let socketPath: String

    /// The ports of servers. Only the server's own bind can tell whether one of them is free.
    ///
    /// The ports are below the range of ephemeral ports (from 32768 on Linux, 49152 on macOS). With
    /// a port in that range, a client that keeps reconnecting to a server that is down can be
    /// assigned the server's own port, connect to itself, and prevent the server from restarting.
    static let ports = 20_000..<26_000

    /// The ports of the nodes of a cluster. The port of a node's cluster bus is higher by 10,000,
    /// and must be below the ephemeral ports too.
    static let clusterPorts = 20_000..<22_700
}

extension ServerEndpoints {
    /// Returns different random ports.
    static func distinct(_ count: Int, in ports: Range<Int>) -> [Int] {
        var chosen: Set<Int> = []
        while chosen.count < count { chosen.insert(Int.random(in: ports)) }
        return Array(chosen)
    }

    /// Adds a random TLS port, if one is wanted, and the path of the Unix socket to a port.
    init(port: Int, withTLS: Bool, socketPath: String) {
        self.port = port
        self.tlsPort = withTLS ? Int.random(in: 26_000..<30_000) : nil
        self.socketPath = socketPath
    }
}

extension String {
    /// Returns a random identifier of a node: 40 hexadecimal digits.
    static func randomID() -> String {
        String((0..<40).map { _ in "0123456789abcdef".randomElement()! })
    }
}
