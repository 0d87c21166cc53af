// swift-tools-version:6.2
import PackageDescription

// Set by scripts/test, as in the package that this one is an example of.
let strict = Context.environment["REDISDC_WARNINGS_AS_ERRORS"] != nil

let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ] + (strict ? [.unsafeFlags(["-warnings-as-errors"])] : [])

let package = Package(
    name: "Arcade",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "BET", targets: ["BET"])
    ],
    dependencies: [
        .package(name: "redisdc", path: "../.."),
        .package(name: "redisdc-gateway", path: "../../Gateway"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.1.0"),
        .package(
            url: "https://github.com/apple/swift-configuration.git", from: "1.0.2", traits: ["CommandLineArguments"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        .target(name: "BET", swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        // The rules of the games: without Redis, HTTP or a clock.
        .target(name: "Games", dependencies: ["BET"], swiftSettings: settings),
        .executableTarget(
            name: "arcade",
            dependencies: [
                "BET", "Games",
                .product(name: "Gateway", package: "redisdc-gateway"),
                .product(name: "GameServices", package: "redisdc"),
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            exclude: ["Lua"],
            resources: [.embedInCode("Scripts")],
            swiftSettings: settings),
        // The table is read where it lies, because the tests in JavaScript read the same file.
        .testTarget(
            name: "BETTests", dependencies: ["BET"], exclude: ["cases.json"],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .testTarget(
            name: "ArcadeTests",
            dependencies: [
                "arcade", "Games",
                .product(name: "Gateway", package: "redisdc-gateway"),
                .product(name: "GameServices", package: "redisdc"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "RedisDCTesting", package: "redisdc"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .testTarget(name: "GamesTests", dependencies: ["Games", "BET"], swiftSettings: settings),
    ]
)
