import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@Suite("The users of SECURITY.md", .serialized, .timeLimit(.minutes(10)))
enum SecurityTests {}

/// A server on which `reset` permits all channels, as on Redis 6.2: the documented rules must work
/// there, too. `WAITAOF` needs an append-only file.
///
/// - Parameter body: receives the server, and a client of the user `default`, in the same database as
///   the others.
func withSecuredServer(_ body: (LocalRedis, _ admin: RedisClient) async throws -> Void) async throws {
    let configuration = LocalRedis.Configuration(
        persistence: .appendOnly(fsync: .everySecond), extra: ["acl-pubsub-default allchannels"])
    try await withLocalRedis(configuration) { server in
        try await withRedisClient(url: server.url + "/1") { admin in try await body(server, admin) }
    }
}

extension SecurityTests {
    @Suite("Least rights", .serialized)
    struct LeastRightsTests {
        @Test(
            "the server accepts each user, whether or not `reset` permits all channels",
            arguments: [
                "allchannels", "resetchannels",
            ])
        func channels(initially: String) async throws {
            try await withLocalRedis(.init(extra: ["acl-pubsub-default \(initially)"])) { server in
                try await withRedisClient(url: server.unixURL) { admin in
                    let users = try DocumentedUsers()
                    for user in Set(users.commands.map { $0[2] }) where user != "default" {
                        let (name, password) = try await users.create(user, on: admin)
                        try await withRedisClient(url: server.url(name, password)) { redis in
                            await #expect(throws: RedisError.self) { try await redis.publish("", to: "elsewhere") }
                        }
                    }
                }
            }
        }

        @Test("redisdc can use every operation of RedisDC, publish and subscribe, and has no unused right")
        func coordination() async throws {
            try await withUser("redisdc", modules: ["RedisDC"]) { url, redis, admin in
                try await CoordinatorOperations(url: url, namespace: "default", admin: admin).run()
                try await ClassicOperations(redis: redis, namespace: nil).run()
                try await PubSubOperations(redis: redis, prefix: "rdc:").run()
            }
        }

        @Test("mail can use every operation of QueueListen, and has no unused right")
        func mail() async throws {
            try await withUser("mail", modules: ["QueueListen"]) { _, redis, admin in
                try await MailOperations(redis: redis, namespace: "default", admin: admin).run()
            }
        }

        @Test("games can use every operation of leaderboards and matchmakers, and has no unused right")
        func games() async throws {
            try await withUser("games", modules: []) { _, redis, admin in
                try await GameOperations(redis: redis, namespace: "default", admin: admin).run()
            }
        }

        @Test("a tenant can use every operation of all libraries in its namespace, and has no unused right")
        func tenant() async throws {
            try await withUser("alice", modules: ["RedisDC", "QueueListen"]) { url, redis, admin in
                try await TenantOperations(url: url, redis: redis, tenant: "alice", admin: admin).run()
            }
        }

        /// Runs `body` with a client of a documented user. Afterwards, the server must have refused
        /// nothing. The user must have the right to each command that the sources of the modules
        /// contain, and each right of the user must have been used or be for one of these commands.
        private func withUser(
            _ user: String, modules: [String],
            _ body: (_ url: String, RedisClient, _ admin: RedisClient) async throws -> Void
        ) async throws {
            let users = try DocumentedUsers()
            let permitted = try users.permitted(to: user)
            // The client sends EVAL if the server forgets a script during a call.
            let sent = try Set(modules.flatMap { try Self.commands(in: $0) }).union(["eval"])
            // First, because this names the rights that are missing.
            try #require(sent.subtracting(permitted) == [])
            try await withSecuredServer { server, admin in
                let (name, password) = try await users.create(user, on: admin)
                _ = try await admin.send("CONFIG", "RESETSTAT")
                let url = server.url(name, password)
                try await withRedisClient(url: url) { redis in
                    try await body(url, redis, admin)
                    let refused = try await refusals(admin)
                    #expect(refused == [])
                    await #expect(throws: RedisError.self) { try await redis.send("STRLEN", "elsewhere") }
                }
                let refused = try await refusals(admin)
                #expect(refused == ["command in toplevel: strlen"])
                let used = try await Self.commands(usedOn: admin)
                for right in permitted.subtracting(sent) {
                    // Redis 6.2 counts a command with all of its subcommands.
                    let command = String(right.prefix { $0 != "|" })
                    let isUsed = used.contains(right) || used.contains(command)
                    let isGiven = try await admin.knows(command)
                    #expect(isUsed || !isGiven, "\(right) is unused")
                }
            }
        }

        /// The commands that the Lua and Swift files of a module contain: some of them are sent only after
        /// a failure.
        private static func commands(in module: String) throws -> Set<String> {
            let folder = packageRoot.appendingPathComponent("Sources/\(module)")
            let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
            var commands: Set<String> = []
            for case let file as URL in files where ["lua", "swift"].contains(file.pathExtension) {
                let text = try String(contentsOf: file, encoding: .utf8)
                let found =
                    file.pathExtension == "lua"
                    ? text.matches(of: /(?:call|protected|try)\('([A-Z]+)'/).map(\.1)
                    : text.matches(of: /"([A-Z]{3,})"/).map(\.1)
                commands.formUnion(found.map { $0.lowercased() })
            }
            return commands
        }

        /// The commands that the server has run, for anybody.
        private static func commands(usedOn admin: RedisClient) async throws -> Set<String> {
            let stats = try #require(try await admin.send("INFO", "commandstats").string)
            return Set(stats.matches(of: /cmdstat_([^:]+):/).map { String($0.1) })
        }
    }
}

extension LocalRedis {
    /// The URL for a user, with a database that the login must select.
    func url(_ user: String, _ password: String) -> String { "redis://\(user):\(password)@127.0.0.1:\(port)/1" }
}

/// The refusals that the server has logged: reason, context, and the command, key or channel.
func refusals(_ admin: RedisClient) async throws -> [String] {
    try await admin.send("ACL", "LOG").array?.map { entry in
        let fields = entry.array ?? []
        func field(_ name: String) -> String {
            fields.firstIndex { $0.string == name }.flatMap { fields[$0 + 1].string } ?? "?"
        }
        return "\(field("reason")) in \(field("context")): \(field("object"))"
    } ?? []
}
