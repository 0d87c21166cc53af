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

let cSettings: [CSetting] = [.unsafeFlags(["-Wall", "-Wextra"] + (strict ? ["-Werror"] : []))]

// A separate package, so that nothing of it reaches users of the library.
let package = Package(
    name: "redisdc-simulation",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "SimulatedRedis", targets: ["SimulatedRedis"]),
        .executable(name: "redisdc-simulate", targets: ["redisdc-simulate"]),
    ],
    dependencies: [
        // What the state machines do not need is left out.
        .package(name: "redisdc", path: "..", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.81.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CLua",
            pkgConfig: "lua5.1",
            providers: [.apt(["liblua5.1-0-dev"]), .brew(["lua@5.1"])]
        ),
        .target(name: "RedisLua", dependencies: ["CLua"], cSettings: cSettings),
        .target(name: "SimulatedRedis", dependencies: ["RedisLua"], swiftSettings: settings),
        .target(
            name: "World",
            dependencies: [
                "SimulatedRedis",
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "redisdc-simulate",
            dependencies: ["World", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            swiftSettings: settings),
        .testTarget(name: "WorldTests", dependencies: ["World"], swiftSettings: settings),
        .testTarget(name: "SimulatedRedisTests", dependencies: ["SimulatedRedis"], swiftSettings: settings),
    ]
)
