import NIOCore
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("RedisConfiguration")
struct RedisConfigurationTests {
    private func with(_ change: (inout RedisConfiguration) -> Void) -> RedisConfiguration {
        var configuration = RedisConfiguration(endpoint: .tcp(host: "host", port: 6379))
        change(&configuration)
        return configuration
    }

    @Test("the default configuration is valid")
    func defaults() throws {
        try with { _ in }.validate()
    }

    static let outOfRange: [(String, @Sendable (inout RedisConfiguration) -> Void)] = [
        ("database", { $0.database = -1 }),
        ("clientName", { $0.clientName = "two words" }),
        ("clientName", { $0.clientName = "line\n" }),
        ("clientName", { $0.clientName = "naïve" }),
        ("clientName", { $0.clientName = "\u{7F}" }),
        ("connectTimeout", { $0.connectTimeout = .zero }),
        ("commandTimeout", { $0.commandTimeout = .zero }),
        ("commandTimeout", { $0.commandTimeout = .seconds(-1) }),
        ("silenceLimit", { $0.silenceLimit = .zero }),
        ("reconnectDelay", { $0.reconnectDelay = .zero ... .seconds(1) }),
        ("laneIdleTimeout", { $0.laneIdleTimeout = .zero }),
        ("settleTimeout", { $0.settleTimeout = .zero }),
        ("probeInterval", { $0.probeInterval = .zero }),
        ("blockingSlice", { $0.blockingSlice = .milliseconds(9) }),
        ("maxLanes", { $0.maxLanes = 0 }),
        ("limits", { $0.limits.replyBytes = 1023 }),
        ("limits", { $0.limits.replyElements = 0 }),
        ("limits", { $0.limits.replyDepth = 0 }),
    ]

    @Test("a value out of its range is refused with an error that names the property", arguments: outOfRange.indices)
    func ranges(index: Int) {
        let (name, change) = Self.outOfRange[index]
        let error = #expect(throws: RedisError.self) { try with(change).validate() }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains(name) == true)
    }

    @Test("values at the bounds of their ranges are valid")
    func edges() throws {
        try with { configuration in
            configuration.database = 0
            configuration.clientName = ""
            configuration.blockingSlice = .milliseconds(10)
            configuration.maxLanes = 1
            configuration.limits.replyBytes = 1024
            configuration.limits.replyElements = 1
            configuration.limits.replyDepth = 1
            for path in [
                \RedisConfiguration.connectTimeout, \.commandTimeout, \.silenceLimit, \.laneIdleTimeout,
                \.settleTimeout,
                \.probeInterval,
            ] { configuration[keyPath: path] = .nanoseconds(1) }
            configuration.reconnectDelay = .nanoseconds(1)...(.nanoseconds(1))
        }.validate()
    }

    @Test("durations beyond the range of the clock do not trap")
    func endless() throws {
        let configuration = with { configuration in
            for path in [
                \RedisConfiguration.connectTimeout, \.commandTimeout, \.silenceLimit, \.laneIdleTimeout,
                \.settleTimeout,
                \.probeInterval,
            ] { configuration[keyPath: path] = .seconds(Int64.max) }
            configuration.reconnectDelay = .seconds(Int64.max)...(.seconds(Int64.max))
        }
        try configuration.validate()
        #expect(NIODeadline.now() + TimeAmount(configuration.commandTimeout) == .distantFuture)
        var backoff = Backoff(configuration.reconnectDelay)
        for _ in 0..<100 { #expect(backoff.next() > .zero) }
    }

    @Test("no description, dump or mirror contains the password")
    func noPassword() throws {
        let configuration = try RedisConfiguration(url: "rediss://alice:hunter2@host:6380/1")
        let credentials = try #require(configuration.credentials)
        var dumped = ""
        dump(configuration, to: &dumped)
        dump(credentials, to: &dumped)
        dump([Optional(configuration)], to: &dumped)
        dumped +=
            "\(configuration) \(credentials)" + String(reflecting: configuration) + String(reflecting: credentials)
        dumped += "\(configuration.credentials as Any) \(["key": configuration])"
        dumped += mirrored(configuration) + mirrored(credentials)
        #expect(!dumped.contains("hunter2"))
        #expect(dumped.contains("alice"))
    }

    private func mirrored(_ value: Any, depth: Int = 0) -> String {
        guard depth < 6 else { return "" }
        return Mirror(reflecting: value).children.map {
            "\($0.label ?? "")=\($0.value) " + mirrored($0.value, depth: depth + 1)
        }.joined()
    }

    @Test("the description shows an IPv6 address in brackets")
    func endpoint() {
        #expect("\(RedisConfiguration.Endpoint.tcp(host: "::1", port: 1))" == "[::1]:1")
        #expect("\(RedisConfiguration.Endpoint.tcp(host: "host", port: 1))" == "host:1")
        #expect("\(RedisConfiguration.Endpoint.unixSocket(path: "/a"))" == "/a")
    }
}
