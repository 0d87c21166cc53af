import Configuration
import Gateway
import Logging

/// The settings of the program, from flags (`--redis-url`) and the environment (`REDIS_URL`).
struct Settings: Sendable {
    /// An invalid setting, in words.
    struct Fault: Error, CustomStringConvertible { var description: String }

    /// How users prove who they are.
    enum Credentials: Sendable {
        /// By a JSON Web Token.
        case tokens(Tokens)
        /// Everybody is whom they claim to be. Only on a loopback address.
        case anonymous
    }

    /// The JSON Web Tokens that are accepted.
    struct Tokens: Sendable {
        enum Key: Sendable {
            /// A token is signed with HMAC-SHA256 and this key.
            case secret(String)
            /// The public key in this PEM file verifies a token's signature.
            case publicKey(path: String)
        }

        var key: Key
        /// The claim `iss` of every token.
        var issuer: String
        /// The claim `aud` of every token, or one of its values.
        var audience: String
    }

    static let usage = """
        usage: redisdc-gateway [--OPTION VALUE]...

        Serves mailboxes over HTTP, server-sent events and WebSocket: see docs/http.md. Each option can also be set in the
        environment: --redis-url as REDIS_URL.

          --redis-url URL           redis://127.0.0.1:6379 by default; set it in the environment if it has a password
          --namespace NAME          of the mailboxes, "default" by default
          --host ADDRESS            to serve, 127.0.0.1 by default
          --port NUMBER             8080 by default; 0 chooses a free one
          --operations-host ADDRESS for /metrics, /healthz and /readyz, 127.0.0.1 by default
          --operations-port NUMBER  9090 by default; 0 chooses a free one
          --admin-key TEXT          with it the operators' page /admin is at the operations address; at least 16 bytes, set
                                    it in the environment
          --admin-namespace NAME    of the locks that the page shows, that of the mailboxes by default
          --admin-partitions NUMBER of that namespace, 1 by default
          --admin-dead-letters LIST mailboxes with dead letters, separated by commas
          --tls-certificate FILE    PEM; with it and --tls-key the gateway serves HTTPS
          --tls-key FILE            PEM
          --behind-proxy true       a proxy in front of this address does TLS, and sets X-Forwarded-For
          --jwt-secret TEXT         the key of tokens by HS256, at least 32 bytes; set it in the environment
          --jwt-public-key FILE     PEM: the key of tokens by ES256 or RS256
          --jwt-issuer TEXT         the claim iss of every token; required with a key
          --jwt-audience TEXT       the claim aud of every token, or one of its values; required with a key. Choose one
                                    that no other service of the issuer has
          --insecure-anonymous true everybody is whom they claim to be; only on a loopback address
          --allow-sends all|none    whether every user may send to every mailbox, none by default
          --allowed-origins LIST    pages that may use the gateway: https://chat.example, separated by commas
          --static-folder FOLDER    files to serve beside the calls
          --session-minutes NUMBER  the lifetime of a session, 720 by default
          --max-connections NUMBER  open connections to the node, 10,000 by default
          --max-connections-of-address NUMBER
                                    from one IPv4 address or one IPv6 network of 64 bits, 256 by default; 0 for no limit,
                                    as behind a proxy
          --shutdown-seconds NUMBER how long a node that ends waits for requests that are under way, 20 by default
          --log-level LEVEL         info by default
        """

    var redisURL: String
    var namespace: String
    var host: String
    var port: Int
    var operationsHost: String
    var operationsPort: Int
    var adminKey: String?
    var adminNamespace: String
    var adminPartitions: Int
    var adminDeadLetters: [String]
    var certificate: String?
    var key: String?
    var isBehindProxy: Bool
    var credentials: Credentials
    var allowsSends: Bool
    var allowedOrigins: Set<String>
    var staticFolder: String?
    var sessionMinutes: Int
    var maxConnections: Int
    /// 0 for no limit.
    var maxConnectionsOfAddress: Int
    var shutdownSeconds: Int
    var logLevel: Logger.Level

    /// Reads and checks the settings.
    ///
    /// - Throws: `Fault`, with the option.
    init(_ reader: ConfigReader) throws {
        redisURL = reader.string(forKey: "redis.url", isSecret: true, default: "redis://127.0.0.1:6379")
        namespace = reader.string(forKey: "namespace", default: "default")
        host = reader.string(forKey: "host", default: "127.0.0.1")
        port = try reader.number("port", default: 8080)
        operationsHost = reader.string(forKey: "operations.host", default: "127.0.0.1")
        operationsPort = try reader.number("operations.port", default: 9090)
        adminKey = reader.string(forKey: "admin.key", isSecret: true)
        adminNamespace = reader.string(forKey: "admin.namespace", default: namespace)
        adminPartitions = try reader.number("admin.partitions", default: 1)
        adminDeadLetters = reader.stringArray(forKey: "admin.dead.letters", default: [])
        certificate = reader.string(forKey: "tls.certificate")
        key = reader.string(forKey: "tls.key")
        isBehindProxy = try reader.flag("behind.proxy")
        allowedOrigins = Set(reader.stringArray(forKey: "allowed.origins", default: []))
        staticFolder = reader.string(forKey: "static.folder")
        sessionMinutes = try reader.number("session.minutes", default: 720)
        let limits = GatewayConfiguration()
        maxConnections = try reader.number("max.connections", default: limits.maxConnections)
        maxConnectionsOfAddress = try reader.number(
            "max.connections.of.address", default: limits.maxConnectionsOfAddress ?? 0)
        shutdownSeconds = try reader.number("shutdown.seconds", default: 20)
        let level = reader.string(forKey: "log.level", default: "info")
        guard let logLevel = Logger.Level(rawValue: level) else {
            throw Fault(description: "--log-level is \(level), expected trace, debug, info, notice, warning or error")
        }
        self.logLevel = logLevel
        switch reader.string(forKey: "allow.sends", default: "none") {
        case "all": allowsSends = true
        case "none": allowsSends = false
        case let other: throw Fault(description: "--allow-sends is \(other), expected all or none")
        }
        credentials = try Self.credentials(reader)
        try validate()
    }

    private static func credentials(_ reader: ConfigReader) throws -> Credentials {
        let secret = reader.string(forKey: "jwt.secret", isSecret: true)
        let path = reader.string(forKey: "jwt.public.key")
        let isAnonymous = try reader.flag("insecure.anonymous")
        func tokens(_ key: Tokens.Key) throws -> Credentials {
            func claim(_ name: String, _ claim: String) throws -> String {
                guard let value = reader.string(forKey: ConfigKey("jwt.\(name)")), !value.isEmpty else {
                    throw Fault(
                        description: "--jwt-\(name) is missing: set it to the claim \(claim) of your tokens, so that a "
                            + "token for another service does not log in here")
                }
                return value
            }
            return .tokens(
                Tokens(key: key, issuer: try claim("issuer", "iss"), audience: try claim("audience", "aud")))
        }
        switch (secret, path, isAnonymous) {
        case (let secret?, nil, false):
            guard secret.utf8.count >= 32 else {
                throw Fault(description: "--jwt-secret has \(secret.utf8.count) bytes, expected at least 32")
            }
            return try tokens(.secret(secret))
        case (nil, let path?, false): return try tokens(.publicKey(path: path))
        case (nil, nil, true): return .anonymous
        default:
            throw Fault(
                description: "expected exactly one of --jwt-secret, --jwt-public-key and --insecure-anonymous: "
                    + "the gateway must know how users prove who they are")
        }
    }

    /// Whether an address can be reached from this machine only.
    static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1" || host.hasPrefix("127.") && host.split(separator: ".").count == 4
    }

    var usesTLS: Bool { certificate != nil }

    private func validate() throws {
        guard (certificate == nil) == (key == nil) else {
            throw Fault(description: "--tls-certificate and --tls-key belong together")
        }
        if case .anonymous = credentials, !Self.isLoopback(host) {
            throw Fault(description: "--insecure-anonymous needs a loopback address, and --host is \(host)")
        }
        if !usesTLS, !isBehindProxy, !Self.isLoopback(host) {
            throw Fault(
                description:
                    "--host \(host) can be reached from other machines, and tokens must not travel without TLS: "
                    + "set --tls-certificate and --tls-key, or --behind-proxy true if a proxy does TLS")
        }
        for origin in allowedOrigins where !origin.hasPrefix("http://") && !origin.hasPrefix("https://") {
            throw Fault(description: "--allowed-origins has \"\(origin)\", expected https://HOST")
        }
        if let adminKey, adminKey.utf8.count < Dashboard.minKeyBytes {
            throw Fault(
                description: "--admin-key has \(adminKey.utf8.count) bytes, expected at least \(Dashboard.minKeyBytes)")
        }
        if adminKey != nil, !Self.isLoopback(operationsHost) {
            throw Fault(
                description: "--admin-key needs a loopback address, and --operations-host is \(operationsHost): "
                    + "its key must not travel without TLS")
        }
        for (option, port) in [("--port", port), ("--operations-port", operationsPort)] {
            guard (0...65_535).contains(port) else {
                throw Fault(description: "\(option) is \(port), expected 0 to 65,535")
            }
        }
        guard maxConnections > 0 else {
            throw Fault(description: "--max-connections is \(maxConnections), expected at least 1")
        }
        guard maxConnectionsOfAddress >= 0 else {
            throw Fault(
                description:
                    "--max-connections-of-address is \(maxConnectionsOfAddress), expected 0 for no limit, or more")
        }
        guard (1...3600).contains(shutdownSeconds) else {
            throw Fault(description: "--shutdown-seconds is \(shutdownSeconds), expected 1 to 3,600")
        }
        guard (1...60 * 24 * 30).contains(sessionMinutes) else {
            throw Fault(description: "--session-minutes is \(sessionMinutes), expected 1 to 43,200")
        }
    }

    /// The settings of the library.
    var gatewayConfiguration: GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.sessionLifetime = .seconds(sessionMinutes * 60)
        configuration.allowedOrigins = allowedOrigins
        configuration.isSecure = usesTLS || isBehindProxy
        configuration.trustsForwardedFor = isBehindProxy
        configuration.maxConnections = maxConnections
        configuration.maxConnectionsOfAddress = maxConnectionsOfAddress == 0 ? nil : maxConnectionsOfAddress
        if !configuration.isSecure, port > 0 {
            // The gateway's own pages on this machine.
            for name in ["localhost", "127.0.0.1"] { configuration.allowedOrigins.insert("http://\(name):\(port)") }
        }
        return configuration
    }
}

extension ConfigReader {
    /// Reads a number. The reader's own function returns the default for anything that is none.
    fileprivate func number(_ key: String, default other: Int) throws -> Int {
        guard let text = string(forKey: ConfigKey(key)) else { return other }
        guard let number = Int(text) else {
            throw Settings.Fault(description: "--\(key.replacing(".", with: "-")) is \(text), expected a number")
        }
        return number
    }

    /// Reads `true` or `false`; `false` if it is not set.
    fileprivate func flag(_ key: String) throws -> Bool {
        if let text = string(forKey: ConfigKey(key)), text != "true", text != "false" {
            throw Settings.Fault(description: "--\(key.replacing(".", with: "-")) is \(text), expected true or false")
        }
        return bool(forKey: ConfigKey(key), default: false)
    }
}
