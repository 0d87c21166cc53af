// swift-tools-version:6.2
import PackageDescription

// As in the root package: set by scripts/test, a warning of ours fails the build there.
let strict = Context.environment["REDISDC_WARNINGS_AS_ERRORS"] != nil

let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (strict ? [.unsafeFlags(["-warnings-as-errors"])] : [])

// A package of its own: it builds the library without the parts that the state machines do not need, and imports them
// with @testable, so it needs -Xswiftc -enable-testing when it is optimized.
let package = Package(
    name: "redisdc-worlds",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "redisdc", path: "../..", traits: []),
        .package(name: "redisdc-simulation", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.81.0"),
    ],
    targets: [
        .target(
            name: "World",
            dependencies: [
                .product(name: "SimulatedRedis", package: "redisdc-simulation"),
                .product(name: "GameServices", package: "redisdc"),
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "redisdc-simulate",
            dependencies: ["World", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            swiftSettings: settings),
        .testTarget(name: "WorldTests", dependencies: ["World"], swiftSettings: settings),
    ]
)
