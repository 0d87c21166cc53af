import Foundation
import Gateway
import Hiredis
import Hummingbird
import Logging
import QueueListen
import RedisDC
import RedisDCTesting
import Synchronization
import Testing

@testable import arcade

@Suite("Accounts", .timeLimit(.minutes(2)))
struct AccountsTests {
    private static let secrets = (0..<3).map { "\($0)" + String(repeating: "x", count: 31) }

    private func withAccounts(
        _ body: (_ accounts: Accounts, _ redis: any Redis, _ removed: RemovedNames) async throws -> Void
    ) async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                try await withPostOffice(redis: redis, namespace: "arcade") { office in
                    try await withCoordinator(redis: redis, namespace: "arcade") { coordinator in
                        let logger = Logger(label: "test")
                        let accounts = Accounts(
                            redis: redis, namespace: "arcade", coordinator: coordinator, office: office,
                            mail: LoggingMailSender(logger: logger), logger: logger)
                        let removed = RemovedNames()
                        accounts.guests.onRemoval { name, _ in removed.add(name) }
                        try await body(accounts, redis, removed)
                    }
                }
            }
        }
    }

    private final class RemovedNames: Sendable {
        private let names = Mutex<[String]>([])
        var all: [String] { names.withLock { $0 } }
        func add(_ name: String) { names.withLock { $0.append(name) } }
    }

    private func logIn(_ accounts: Accounts, _ name: String, _ secret: String) async throws -> Bool {
        try await accounts.authenticate(
            Login(user: name, device: "test", credential: Array("\"\(secret)\"".utf8), address: nil))
    }

    @Test("the data of an expired guest are removed before another player has the name, and at no other login")
    func expired() async throws {
        try await withAccounts { accounts, redis, removed in
            #expect(try await logIn(accounts, "guest", Self.secrets[0]))
            #expect(removed.all == ["guest"])
            for _ in 0..<2 { #expect(try await logIn(accounts, "guest", Self.secrets[0])) }
            #expect(try await !logIn(accounts, "guest", Self.secrets[1]))
            #expect(removed.all == ["guest"])
            // As the expiry does.
            _ = try await redis.send(RedisCommand("DEL", "{arcade:account:guest}"))
            #expect(try await logIn(accounts, "guest", Self.secrets[1]))
            #expect(removed.all == ["guest", "guest"])
            #expect(try await !logIn(accounts, "guest", Self.secrets[0]))
        }
    }

    @Test("of many browsers that use a free name at once, one keeps it, and the data are removed once")
    func race() async throws {
        try await withAccounts { accounts, _, removed in
            let owners = try await withThrowingTaskGroup(of: Bool.self) { group in
                for secret in Self.secrets { group.addTask { try await logIn(accounts, "guest", secret) } }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(owners == 1 && removed.all == ["guest"])
        }
    }
}
