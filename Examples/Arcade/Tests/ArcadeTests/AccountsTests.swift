import Foundation
import Hiredis
import Hummingbird
import Logging
import QueueListen
import RedisDC
import RedisDCTesting
import Synchronization
import Testing

@testable import Gateway
@testable import arcade

@Suite("Accounts", .timeLimit(.minutes(2)))
struct AccountsTests {
    private static let secrets = (0..<3).map { "\($0)" + String(repeating: "x", count: 31) }

    private func withAccounts(
        _ body: (_ accounts: Accounts, _ redis: any Redis, _ removed: RemovedNames) async throws -> Void
    ) async throws {
        try await withCoordinatedAccounts { accounts, redis, removed, _ in try await body(accounts, redis, removed) }
    }

    private func withCoordinatedAccounts(
        _ body: (Accounts, any Redis, RemovedNames, (Coordinator, Gateway)) async throws -> Void
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
                        let gateway = Gateway(
                            redis: redis, office: office, coordinator: coordinator, authenticator: accounts,
                            logger: logger)
                        try await body(accounts, redis, removed, (coordinator, gateway))
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

    // MARK: Leaving

    /// Lets a guest leave, whose account expires in the middle of that, and another player claim the name, while a
    /// repetition of the leave is under way.
    ///
    /// - Returns: whether the other player has the name, and the error of the repetition.
    private func claimWhileLeaving(
        _ accounts: Accounts, _ redis: any Redis, _ coordinator: Coordinator, _ gateway: Gateway
    ) async throws -> (isClaimed: Bool, repetition: (any Error)?) {
        #expect(try await logIn(accounts, "guest", Self.secrets[0]))
        let session = try await gateway.sessions.login(user: "guest", device: "test", lifetime: .seconds(60)).session
        let (removals, removal) = AsyncStream<Void>.makeStream()
        let (ends, end) = AsyncStream<Void>.makeStream()
        accounts.guests.onRemoval { name, keptDevice in
            try await accounts.endSessions(of: name, except: keptDevice, gateway)
            removal.yield()
            if keptDevice != nil { for await _ in ends { break } }
        }
        let leaving = Task {
            // A leave that fails before the removal ends the wait for it.
            defer { removal.finish() }
            try await accounts.leave(Caller(session), gateway)
        }
        guard await removals.first(where: { true }) != nil else {
            try await leaving.value
            return (false, nil)
        }
        // As the expiry does.
        _ = try await redis.send(RedisCommand("DEL", "{arcade:account:guest}"))
        let isDone = Mutex(false)
        let claim = Task {
            defer { isDone.withLock { $0 = true } }
            return try await logIn(accounts, "guest", Self.secrets[1])
        }
        func waiters() async throws -> Int {
            try await coordinator.inspect("account guest", limit: 1)?.waiterCount ?? 0
        }
        while try await waiters() == 0, !isDone.withLock({ $0 }) { await Task.yield() }
        let repetition = Task { try await accounts.leave(Caller(session), gateway) }
        while try await waiters() == 1 { await Task.yield() }
        end.finish()
        try await leaving.value
        let isClaimed = try await claim.value
        do {
            try await repetition.value
            return (isClaimed, nil)
        } catch { return (isClaimed, error) }
    }

    @Test("a name that is claimed while its guest leaves is the new player's, also when the leave is repeated")
    func claimedWhileLeaving() async throws {
        try await withCoordinatedAccounts { accounts, redis, _, node in
            let result = try await claimWhileLeaving(accounts, redis, node.0, node.1)
            #expect(result.isClaimed)
            #expect((result.repetition as? Problem)?.kind == .unknownSession)
            #expect(try await accounts.exists("guest"))
            #expect(try await logIn(accounts, "guest", Self.secrets[1]))
            #expect(try await !logIn(accounts, "guest", Self.secrets[0]))
        }
    }
}
