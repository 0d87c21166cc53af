// swift-tools-version:6.2
import PackageDescription

// As in the root package: set by scripts/test, a warning of ours fails the build there.
let strict = Context.environment["REDISDC_WARNINGS_AS_ERRORS"] != nil

// Without NonisolatedNonsendingByDefault: Hummingbird's closures and writers are not isolated to their callers, and a
// function that is could not pass a writer on.
let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ] + (strict ? [.unsafeFlags(["-warnings-as-errors"])] : [])

// A separate package, so that the dependencies of the gateway never reach users of the library.
let package = Package(
    name: "redisdc-gateway",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "Gateway", targets: ["Gateway"]),
        .executable(name: "redisdc-gateway", targets: ["redisdc-gateway"]),
    ],
    dependencies: [
        .package(name: "redisdc", path: ".."),
        .package(name: "redisdc-gateway-client", path: "../GatewayClient"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.2"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.1.0"),
        .package(url: "https://github.com/vapor/jwt-kit.git", from: "5.7.1"),
        .package(
            url: "https://github.com/apple/swift-configuration.git", from: "1.0.2", traits: ["CommandLineArguments"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.9.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.6.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
        .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.30.0"),
    ],
    targets: [
        .target(
            name: "Gateway",
            dependencies: [
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            exclude: ["Lua"],
            resources: [.embedInCode("Scripts"), .embedInCode("Admin/Pages")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "redisdc-gateway",
            dependencies: [
                "Gateway",
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HummingbirdTLS", package: "hummingbird"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),
        // Not a product: the server of the guide Getting started of RedisDC.
        .executableTarget(
            name: "server-example",
            dependencies: [
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ],
            path: "Examples/server",
            swiftSettings: settings
        ),
        // Not a product: it measures the gateway, see docs/benchmarks.md.
        .executableTarget(
            name: "gateway-bench",
            dependencies: [
                "Gateway",
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "RedisDCTesting", package: "redisdc"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            path: "Benchmarks",
            swiftSettings: settings
        ),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "Gateway", "redisdc-gateway", "server-example",
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "RedisDCTesting", package: "redisdc"),
                .product(name: "GatewayClient", package: "redisdc-gateway-client"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            swiftSettings: settings
        ),
    ]
)
