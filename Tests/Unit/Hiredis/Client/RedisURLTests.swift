import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("Redis URLs")
struct RedisURLTests {
    struct Right: Sendable, CustomTestStringConvertible {
        var url: String
        var endpoint: RedisConfiguration.Endpoint
        var user: String?
        var password: String?
        var database = 0
        var isSecure = false

        init(
            _ url: String, _ host: String, _ port: Int = 6379, user: String? = nil, password: String? = nil,
            database: Int = 0, isSecure: Bool = false
        ) {
            (self.url, self.user, self.password, self.database) = (url, user, password, database)
            (endpoint, self.isSecure) = (.tcp(host: host, port: port), isSecure)
        }

        init(_ url: String, socket: String, user: String? = nil, password: String? = nil, database: Int = 0) {
            (self.url, self.user, self.password, self.database) = (url, user, password, database)
            endpoint = .unixSocket(path: socket)
        }

        var testDescription: String { url }
    }

    static let rightURLs = [
        Right("redis://localhost", "localhost"),
        Right("redis://localhost/", "localhost"),
        Right("redis://localhost:", "localhost"),
        Right("redis://localhost:/1", "localhost", database: 1),
        Right("REDIS://localhost", "localhost"),
        Right("redis://127.0.0.1:7000", "127.0.0.1", 7000),
        Right("redis://redis.example:1", "redis.example", 1),
        Right("redis://redis.example:65535", "redis.example", 65535),
        Right("redis://[::1]", "::1"),
        Right("redis://[::1]:6380/1", "::1", 6380, database: 1),
        Right("redis://u:p@[2001:db8::7]:6380", "2001:db8::7", 6380, user: "u", password: "p"),
        Right("redis://host/0", "host"),
        Right("redis://host/15", "host", database: 15),
        Right("redis://host?db=3", "host", database: 3),
        Right("redis://host/?db=3", "host", database: 3),
        Right("redis://host/?x=1&db=4", "host", database: 4),
        Right("redis://:secret@host", "host", password: "secret"),
        Right("redis://alice:secret@host:6380/2", "host", 6380, user: "alice", password: "secret", database: 2),
        Right("redis://alice:p%40ss%3Aw%2Frd%25@host", "host", user: "alice", password: "p@ss:w/rd%"),
        Right("redis://al%3Aice:s@host", "host", user: "al:ice", password: "s"),
        Right("redis://:na%C3%AFve%20%E2%98%83@host", "host", password: "naïve ☃"),
        Right("rediss://host", "host", isSecure: true),
        Right("rediss://alice:s@host:6380/1", "host", 6380, user: "alice", password: "s", database: 1, isSecure: true),
        Right("unix:///tmp/redis.sock", socket: "/tmp/redis.sock"),
        Right("redis+unix:///tmp/redis.sock", socket: "/tmp/redis.sock"),
        Right("unix:///tmp/redis.sock?db=5", socket: "/tmp/redis.sock", database: 5),
        Right("unix:///tmp/a%20b/redis.sock", socket: "/tmp/a b/redis.sock"),
        Right("unix://:secret@/tmp/redis.sock", socket: "/tmp/redis.sock", password: "secret"),
        Right(
            "unix://alice:secret@/tmp/r.sock?db=1", socket: "/tmp/r.sock", user: "alice", password: "secret",
            database: 1),
    ]

    @Test("a valid URL determines the endpoint, credentials, database and TLS", arguments: rightURLs)
    func right(_ expected: Right) throws {
        let configuration = try RedisConfiguration(url: expected.url)
        #expect(configuration.endpoint == expected.endpoint)
        #expect(configuration.credentials?.username == expected.user)
        #expect(configuration.credentials?.password == expected.password)
        #expect(configuration.database == expected.database)
        #expect((configuration.tls != nil) == expected.isSecure)
        if let tls = configuration.tls { #expect(tls.verification == .full && tls.authority == .system) }
        #expect(throws: Never.self) { try configuration.validate() }
    }

    @Test(
        "an invalid URL is refused with .invalidArgument, and the error does not contain the password",
        arguments: [
            "", " ", "localhost", "localhost:6379", "host/0", "://host", "http://:hunter2@host", "valkey://host",
            // Missing host.
            "redis://", "redis:///0", "redis://:hunter2@", "redis://:hunter2@/0", "redis://:6379",
            // A user without a password, who could not log in.
            "redis://alice@host", "redis://hunter2@host", "redis://alice:@host", "unix://alice@/tmp/redis.sock",
            // Ports.
            "redis://:hunter2@host:0", "redis://:hunter2@host:65536", "redis://:hunter2@host:-1",
            "redis://:hunter2@host:port", "redis://:hunter2@host:99999999999999999999",
            // Databases.
            "redis://:hunter2@host/one", "redis://:hunter2@host/-1", "redis://:hunter2@host/1.5", "redis://host/1/2",
            "redis://:hunter2@host/99999999999999999999", "redis://:hunter2@host?db=x", "unix:///tmp/redis.sock?db=-1",
            // Characters that must be percent-encoded in a password.
            "redis://:hunter2#x@host", "redis://:hunter2/x@host", "redis://:hunter2?x@host",
            // Missing path.
            "unix://", "unix:///", "unix://?db=1", "unix://:hunter2@/",
            "redis://[::1",
        ])
    func wrong(url: String) {
        do throws(RedisError) {
            let configuration = try RedisConfiguration(url: url)
            Issue.record("\(url) was accepted as \(configuration.endpoint)")
        } catch {
            #expect(error.code == .invalidArgument)
            #expect(error.message.contains("redis://[user:password@]host"))
            for text in ["\(error)", String(reflecting: error), error.message] { #expect(!text.contains("hunter2")) }
        }
    }

    @Test(
        "a socket URL with a host is refused, because its path would be wrong",
        arguments: ["unix://tmp/redis.sock", "unix://host:1/tmp/redis.sock"])
    func socketWithHost(url: String) {
        #expect(throws: RedisError.self) { try RedisConfiguration(url: url) }
    }

    @Test("the database of the query takes precedence over that of the path")
    func twoDatabases() throws {
        #expect(try RedisConfiguration(url: "redis://host/1?db=2").database == 2)
    }
}
