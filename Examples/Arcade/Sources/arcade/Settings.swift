import Configuration

/// The settings of a node, from flags (`--redis-url`) and the environment (`REDIS_URL`).
struct Settings: Sendable {
    static let usage = """
        usage: arcade [--OPTION VALUE]...

        Serves the arcade. Start it on as many machines as you like, with the same Redis, behind one origin.

          --redis-url URL         redis://127.0.0.1:6379 by default; set it in the environment if it has a password
          --namespace NAME        of all keys, "arcade" by default
          --host ADDRESS          to serve, 127.0.0.1 by default
          --port NUMBER           8080 by default; 0 chooses a free one
          --origin URL            the address that browsers open, if it is another one: https://arcade.example
          --pages FOLDER          the pages, those beside the sources by default
          --client FOLDER         the folder with redisdc.js, that in this repository by default
          --mail-folder FOLDER    where mails to players are written; without it, they are in the log
          --push-folder FOLDER    the same for push notifications
          --grace-seconds NUMBER  for which a player may be away: a page is loaded again, or its node has died; 3 by
                                  default, 1 to 3600
          --lock-seconds NUMBER   after which a lock of a node that has died is free, 3 by default, 1 to 3600
        """

    /// An invalid setting, in words.
    struct Fault: Error, CustomStringConvertible { var description: String }

    var redisURL: String
    var namespace: String
    var host: String
    var port: Int
    var origin: String?
    var pages: String
    var client: String
    var mailFolder: String?
    var pushFolder: String?
    var grace: Duration
    var lockTTL: Duration

    /// - Throws: `Fault`, with the option.
    init(_ reader: ConfigReader) throws {
        // The folder Examples/Arcade, where this file was compiled.
        let arcade = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
        redisURL = reader.string(forKey: "redis.url", isSecret: true, default: "redis://127.0.0.1:6379")
        namespace = reader.string(forKey: "namespace", default: "arcade")
        host = reader.string(forKey: "host", default: "127.0.0.1")
        port = reader.int(forKey: "port", default: 8080)
        origin = reader.string(forKey: "origin")
        pages = reader.string(forKey: "pages", default: arcade + "/web")
        client = reader.string(forKey: "client", default: arcade + "/../../Gateway/Web")
        mailFolder = reader.string(forKey: "mail.folder")
        pushFolder = reader.string(forKey: "push.folder")
        grace = try Self.seconds("--grace-seconds", reader.int(forKey: "grace.seconds", default: 3))
        lockTTL = try Self.seconds("--lock-seconds", reader.int(forKey: "lock.seconds", default: 3))
        let isLocal = host == "localhost" || host == "::1" || host.hasPrefix("127.")
        guard isLocal || origin?.hasPrefix("https://") == true else {
            throw Fault(
                description: "--host \(host) can be reached from other machines, and passwords must not travel without "
                    + "TLS: put a proxy with TLS in front, and set --origin to its https:// address")
        }
    }

    private static func seconds(_ option: String, _ number: Int) throws -> Duration {
        guard (1...3600).contains(number) else {
            throw Fault(description: "\(option) is \(number), and must be 1 to 3600")
        }
        return .seconds(number)
    }

    /// The origins of the pages.
    var origins: Set<String> {
        var origins: Set<String> = ["http://localhost:\(port)", "http://127.0.0.1:\(port)"]
        if let origin { origins = [origin] }
        return origins
    }

    /// Whether browsers come over TLS.
    var isSecure: Bool { origin?.hasPrefix("https://") == true }
}
