// What the tests of failures share: a post office behind a proxy.
import Hiredis
import RedisDCTesting
import Testing

@testable import QueueListen

extension QueueListenTests {
    @Suite("When things fail")
    struct FailureTests {}
}

/// A server, a post office behind a proxy, another one without, and a client that looks on.
func withProxiedOffice<Result>(
    configure: (inout PostOfficeConfiguration) -> Void = { _ in },
    _ body: (FaultProxy, _ proxied: PostOffice, _ other: PostOffice, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    var configuration = PostOfficeConfiguration()
    // Nothing in these tests is found by the slow look.
    configuration.recheckInterval = .seconds(3600)
    configure(&configuration)
    return try await withServer { server, _, redis in
        try await withFaultProxy(to: .port(server.port)) { proxy in
            try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
                try await withPostOffice(redis: client, configuration: configuration) { proxied in
                    try await withPostOffice(redis: redis, configuration: configuration) { other in
                        try await body(proxy, proxied, other, redis)
                    }
                }
            }
        }
    }
}

/// Reads until it has so many, and acknowledges them.
func take(_ count: Int, from mailbox: Mailbox) async throws -> [String] {
    var texts: [String] = []
    do {
        for try await event in mailbox.messages() {
            guard case .message(let message) = event else {
                Issue.record("\(event)")
                break
            }
            texts.append(message.text)
            if texts.count == count { break }
        }
    } catch {
        // Whoever waits for what it acknowledges would wait long.
        Issue.record(error)
    }
    return texts
}
