import Foundation
import HTTPTypes
import Hiredis
import Hummingbird
import Logging
import NIOCore
import QueueListen
import RedisDC
import RedisDCTesting
import Synchronization
import Testing

@testable import Gateway
@testable import arcade

/// Passwords, and the calls of players who have forgotten theirs.
@Suite("Passwords", .timeLimit(.minutes(2)))
struct PasswordTests {
    /// The accounts of a test, and the calls that players make.
    private struct Place: Sendable {
        let accounts: Accounts
        let redis: any Redis
        let mails: Mails
        let derivations: Derivations
        let responder: RouterResponder<LocalContext>

        /// Stores an account with a verified address.
        func register(_ name: String, _ password: String) async throws {
            let hash = try derivations.passwords.hash(of: password)
            _ = try await redis.send([
                "HSET", .string("{arcade:account:\(name)}"), "password", .string(hash), "email", "a@example.org",
                "verified", "1",
            ])
        }

        func logIn(_ name: String, password: String) async throws -> Bool {
            let credential = try JSONEncoder().encode(["password": password])
            return try await accounts.authenticate(Login(user: name, device: "test", credential: Array(credential)))
        }

        /// Makes a call through a proxy, and returns the status of the reply.
        func call(
            _ path: String, _ content: [String: String], from address: String = "192.0.2.1",
            type: String = "application/json", origin: String? = nil
        ) async throws -> Int {
            var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: path)
            head.headerFields[.contentType] = type
            head.headerFields[HTTPField.Name("X-Forwarded-For")!] = address
            if let origin { head.headerFields[.origin] = origin }
            let body = ByteBuffer(bytes: try JSONEncoder().encode(content))
            do {
                let request = Request(head: head, body: RequestBody(buffer: body))
                return try await responder.respond(to: request, context: LocalContext()).status.code
            } catch let error as HTTPError { return error.status.code }
        }

        /// Asks for a code, and returns that of the mail.
        func code(of name: String) async throws -> String {
            let status = try await call("/account/forgot", ["name": name], from: "203.0.113.1")
            #expect(status == 204)
            var words: [Substring] = []
            while words.isEmpty {
                words = mails.texts.withLock { $0.last?.split(separator: " ") ?? [] }
                await Task.yield()
            }
            return String(words.last ?? "")
        }
    }

    private final class Mails: MailSender {
        let texts = Mutex<[String]>([])
        func send(_ text: String, to address: String) async throws { texts.withLock { $0.append(text) } }
    }

    /// Counts how often a key is derived from a password, which is all that takes time.
    private final class Derivations: Sendable {
        private let all = Mutex(0)
        var count: Int { all.withLock { $0 } }

        var passwords: Passwords {
            Passwords { [self] password, salt in
                all.withLock { $0 += 1 }
                return Data((Array(salt) + Array(password.utf8) + Array(repeating: 1, count: 32)).prefix(32))
            }
        }
    }

    private func withPlace(_ body: (Place) async throws -> Void) async throws {
        try await withLocalRedis { server in
            try await withRedisClient(url: server.url) { redis in
                try await withPostOffice(redis: redis, namespace: "arcade") { office in
                    try await withCoordinator(redis: redis, namespace: "arcade") { coordinator in
                        let (logger, mails, derivations) = (Logger(label: "test"), Mails(), Derivations())
                        let accounts = Accounts(
                            redis: redis, namespace: "arcade", coordinator: coordinator, office: office, mail: mails,
                            logger: logger, passwords: derivations.passwords)
                        var configuration = GatewayConfiguration()
                        configuration.allowedOrigins = ["https://arcade.example"]
                        let gateway = Gateway(
                            redis: redis, office: office, coordinator: coordinator, authenticator: accounts,
                            configuration: configuration, logger: logger)
                        let router = Router(context: LocalContext.self)
                        let limit = AddressLimit(coordinator: coordinator, trustsForwardedFor: true)
                        accounts.addCalls(gateway, router, limit)
                        try await body(
                            Place(
                                accounts: accounts, redis: redis, mails: mails, derivations: derivations,
                                responder: router.buildResponder()))
                    }
                }
            }
        }
    }

    @Test("a hash is that of its password alone, and two hashes of a password differ")
    func hashes() throws {
        let passwords = Passwords()
        let hash = try passwords.hash(of: "apple123")
        #expect(try passwords.isRight("apple123", for: hash))
        #expect(try !passwords.isRight("apple124", for: hash))
        #expect(try passwords.hash(of: "apple123") != hash)
        for text in [nil, "", "x", ":", "AAAA", "AAAA:AAAA", hash + ":"] {
            #expect(try !passwords.isRight("apple123", for: text), "\(text ?? "none")")
        }
    }

    @Test("a login by a wrong password derives one key, whether the name is registered, a guest's or nobody's")
    func wrongPassword() async throws {
        try await withPlace { place in
            try await place.register("alice", "apple123")
            _ = try await place.redis.send(["HSET", "{arcade:account:guest}", "secret", "x"])
            for name in ["alice", "guest", "nobody"] {
                let before = place.derivations.count
                #expect(try await !place.logIn(name, password: "wrong123"))
                #expect(place.derivations.count == before + 1, "\(name)")
            }
            #expect(try await place.logIn("alice", password: "apple123"))
        }
    }

    @Test("wrong codes of strangers, however many, do not block the player's right code")
    func wrongCodes() async throws {
        try await withPlace { place in
            try await place.register("alice", "apple123")
            let code = try await place.code(of: "alice")
            #expect(code.count == 12)
            for number in 0..<200 {
                let wrong = ["name": "alice", "code": "WRONG\(number)", "password": "pear4567"]
                #expect(try await place.call("/account/reset", wrong, from: "192.0.2.\(number % 20)") == 403)
            }
            let right = ["name": "alice", "code": code, "password": "pear4567"]
            #expect(try await place.call("/account/reset", right, from: "198.51.100.1") == 204)
            #expect(try await place.logIn("alice", password: "pear4567"))
            #expect(try await !place.logIn("alice", password: "apple123"))
        }
    }

    @Test("a page of another origin can neither ask for a code, nor reset a password, nor use up the limit")
    func foreignPages() async throws {
        try await withPlace { place in
            try await place.register("alice", "apple123")
            for path in ["/account/forgot", "/account/reset"] {
                let content = ["name": "alice", "code": "x", "password": "pear4567"]
                for _ in 0..<30 {
                    for type in ["text/plain", "application/x-www-form-urlencoded", ""] {
                        #expect(try await place.call(path, content, type: type) == 415, "\(path) \(type)")
                    }
                    for origin in ["https://evil.example", "null", "http://arcade.example"] {
                        #expect(try await place.call(path, content, origin: origin) == 403, "\(path) \(origin)")
                    }
                }
            }
            let status = try await place.call(
                "/account/forgot", ["name": "nobody"], type: "application/json; charset=utf-8",
                origin: "https://arcade.example")
            #expect(status == 204)
            #expect(place.mails.texts.withLock { $0.isEmpty })
        }
    }

    @Test("a new password has 8 to 64 characters; an older, shorter one logs in until it is changed")
    func lengths() async throws {
        try await withPlace { place in
            try await place.register("alice", "abcd")
            #expect(try await place.logIn("alice", password: "abcd"))
            let code = try await place.code(of: "alice")
            for (count, status) in [(4, 400), (7, 400), (65, 400), (64, 204)] {
                let password = String(repeating: "p", count: count)
                let reset = ["name": "alice", "code": code, "password": password]
                #expect(try await place.call("/account/reset", reset) == status, "\(count) characters")
            }
            #expect(try await !place.logIn("alice", password: "abcd"))
        }
    }
}
