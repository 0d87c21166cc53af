import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Login, TLS and permissions", .serialized)
    struct LoginTests {
        @Test("a wrong password fails immediately, with advice and without the password in the error")
        func wrongPassword() async throws {
            try await withLocalRedis(.init(password: "right")) { server in
                var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: server.port))
                configuration.commandTimeout = .seconds(60)
                configuration.credentials = .init(password: "tell-nobody")
                try await withRedisClient(configuration) { redis in
                    let error = await redisError { _ = try await redis.send("PING") }
                    #expect(error?.code == .authenticationFailed)
                    #expect("\(error as Any) \(String(reflecting: error))".contains("tell-nobody") == false)
                }
                configuration.credentials = nil
                try await withRedisClient(configuration) { redis in
                    let error = await redisError { _ = try await redis.send("PING") }
                    #expect(error?.code == .authenticationFailed)
                    #expect(error?.message.contains("password") == true)
                }
                configuration.credentials = .init(password: "right")
                try await withRedisClient(configuration) { redis in
                    try await expectPong(redis)
                }
            }
        }

        @Test("at maxclients the error contains the server's reason, and the client connects when there is room")
        func maxClients() async throws {
            try await withServer(.init(extra: ["maxclients 2"])) { server, first in
                _ = try await first.send("PING")
                try await withTestClient(url: server.url) { second in
                    _ = try await second.send("PING")
                    try await withTestClient(url: server.url) { third in
                        try await until("the error contains the server's reason") {
                            let error = await redisError {
                                _ = try await third.send(["PING"], timeout: .milliseconds(300))
                            }
                            #expect(error?.code == .timedOut)
                            return error?.message.contains("max number of clients") == true
                        }
                        _ = try await first.send("CONFIG", "SET", "maxclients", 10)
                        #expect(try await third.send(["PING"], timeout: patience) == .status("PONG"))
                    }
                }
            }
        }

        @Test("the client waits for a server that is loading its data")
        func loading() async throws {
            // While it loads, the server handles its clients every 1,024 commands: here every 0.5 s, for 20 s.
            let slow = ["key-load-delay 500"]
            let configuration = LocalRedis.Configuration(
                persistence: .appendOnly(fsync: .always), extra: slow, waitUntilLoaded: false)
            try await withServer(configuration) { server, redis in
                _ = try await redis.pipeline(
                    (0..<40_000).map { ["SET", "key:\($0)", .bytes([UInt8](repeating: 1, count: 100))] })
                await server.kill()
                try await server.restart()
                let meanwhile = await redisError { try await loadingReply(server) }
                #expect(meanwhile?.code == .serverNotReady, "\(String(describing: meanwhile))")
                #expect(try await redis.send(["GET", "key:39999"], timeout: patience).bytes?.count == 100)
            }
        }

        /// Throws the error of a connection attempt that does not wait for the loading.
        private func loadingReply(_ server: LocalRedis) async throws {
            try await withTestClient(url: server.unixURL) { redis in
                do throws(RedisError) { _ = try await redis.send(["PING"], timeout: .seconds(15)) } catch {
                    throw error.underlying ?? error
                }
            }
        }

        #if !TLSSupport
            @Test("without the trait TLSSupport, a client for a server with TLS is refused with an error that names it")
            func withoutTLS() async throws {
                let configuration = try RedisConfiguration(url: "rediss://localhost:1")
                let error = await redisError { try await withRedisClient(configuration) { _ in } }
                #expect(error?.code == .invalidArgument)
                #expect(error?.message.contains("TLSSupport") == true)
            }
        #endif

        @Test("TLS: a certificate with the right authority and name is accepted", .needsTLS)
        func tlsGood() async throws {
            try await withTestCertificates(.good) { certificates in
                try await withLocalRedis(.init(tls: certificates)) { server in
                    var configuration = try RedisConfiguration(url: #require(server.tlsURL))
                    configuration.tls?.authority = .file(certificates.authority)
                    try await withRedisClient(configuration) { redis in
                        try await expectPong(redis)
                        let big = [UInt8](repeating: 9, count: 3 << 20)
                        _ = try await redis.send("SET", "k", .bytes(big))
                        #expect(try await redis.send("GET", "k") == .bytes(big))
                        let popped = Task { try await redis.block(.brpop("list"), timeout: .seconds(30)) { _ in } }
                        try await until("a lane is blocked") { try await redis.blockedClients() == 1 }
                        _ = try await redis.send("LPUSH", "list", "x")
                        #expect(try await popped.value?.array?.last?.string == "x")
                    }
                }
            }
        }

        @Test(
            "TLS: an expired certificate, an unknown authority and a wrong host name are refused",
            .needsTLS, arguments: [TestCertificates.Kind.expired, .unknownAuthority, .wrongHostName])
        func tlsBad(kind: TestCertificates.Kind) async throws {
            try await withTestCertificates(kind) { certificates in
                try await withLocalRedis(.init(tls: certificates)) { server in
                    var configuration = try RedisConfiguration(url: #require(server.tlsURL))
                    configuration.tls?.authority = .file(certificates.authority)
                    configuration.commandTimeout = .milliseconds(500)
                    try await withRedisClient(configuration) { redis in
                        // The reason is known after the first attempt to connect.
                        try await until("the error names the reason") {
                            let error = await redisError { _ = try await redis.send("PING") }
                            #expect(error?.code == .timedOut)
                            #expect(error?.mayHaveRun == false)
                            let reason = (error?.underlying as? RedisError)?.message ?? ""
                            return reason.contains("CERTIFICATE") || reason.lowercased().contains("hostname")
                        }
                    }
                }
            }
        }

        @Test("TLS: the client certificate is sent to a server that requires one", .needsTLS)
        func tlsClientCertificate() async throws {
            try await withTestCertificates(.good) { certificates in
                try await withLocalRedis(.init(tls: certificates, extra: ["tls-auth-clients yes"])) { server in
                    var configuration = try RedisConfiguration(url: #require(server.tlsURL))
                    configuration.commandTimeout = .milliseconds(500)
                    configuration.tls?.authority = .file(certificates.authority)
                    try await withRedisClient(configuration) { redis in
                        #expect(await redisError { _ = try await redis.send("PING") } != nil)
                    }
                    configuration.commandTimeout = patience
                    configuration.tls?.clientCertificate = .init(
                        certificateFile: certificates.clientCertificate, keyFile: certificates.clientKey)
                    try await withRedisClient(configuration) { redis in
                        try await expectPong(redis)
                    }
                }
            }
        }

        @Test("all features work for a user without CLIENT, INFO, @admin and @dangerous")
        func leastPrivileged() async throws {
            let rule = "worker on >secret ~* &* +@all -@admin -@dangerous -client -info"
            try await withServer(.init(aclUsers: [rule])) { server, admin in
                var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: server.port))
                configuration.credentials = .init(username: "worker", password: "secret")
                configuration.blockingSlice = .milliseconds(50)
                try await withRedisClient(configuration) { redis in
                    try await expectPong(redis)
                    #expect(redis.serverVersion == nil)
                    let denied = await redisError { _ = try await redis.send("CLIENT", "ID") }
                    #expect(denied?.code == .notPermitted)
                    #expect(try await redis.script(RedisScript("return 7"), keys: []) == .integer(7))
                    #expect(try await redis.transaction([["SET", "a", 1]]) == [.status("OK")])
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        try await redis.withSubscription(to: ["news"]) { events in
                            #expect(try await redis.publish("hello", to: "news") == 1)
                            guard case .message(let message)? = try await events.next() else {
                                Issue.record("the event is not a message")
                                return
                            }
                            #expect(message.text == "hello")
                        }
                    }
                    // Longer than several slices of the wait, then served.
                    let served = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    try await Task.sleep(for: .milliseconds(200))
                    _ = try await admin.send("LPUSH", "list", "x")
                    #expect(try await served.value?.array?.last?.string == "x")
                    #expect(try await redis.block(.brpop("list"), timeout: .milliseconds(120)) { _ in } == nil)
                    let cancelled = Task { try await redis.block(.brpop("list"), timeout: nil) { _ in } }
                    try await until("the wait is blocked") { try await admin.blockedClients() == 1 }
                    cancelled.cancel()
                    let error = await redisError { _ = try await cancelled.value }
                    #expect(error?.code == .cancelled)
                    try await until("no client is blocked") { try await admin.blockedClients() == 0 }
                }
            }
        }
    }
}
