// Helpers that the tests of failures share.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen

/// Runs a server, a post office behind a proxy, another one without, and a client for observation.
func withProxiedOffice<Result>(
    configure: (inout PostOfficeConfiguration) -> Void = { _ in },
    _ body: (FaultProxy, _ proxied: PostOffice, _ other: PostOffice, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    var configuration = PostOfficeConfiguration()
    configuration.callTimeout = patience
    // Periodic checks find nothing in these tests.
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

/// Reads a number of messages through the sequence, which acknowledges them page by page.
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
        // Recorded instead of thrown, so that a test that waits for acknowledgements shows why it does.
        Issue.record(error)
    }
    return texts
}
