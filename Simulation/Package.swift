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
    products: [.library(name: "SimulatedRedis", targets: ["SimulatedRedis"])],
    targets: [
        .systemLibrary(
            name: "CLua",
            pkgConfig: "lua5.1",
            providers: [.apt(["liblua5.1-0-dev"])]
        ),
        .target(name: "RedisLua", dependencies: ["CLua"], cSettings: cSettings),
        .target(name: "SimulatedRedis", dependencies: ["RedisLua"], swiftSettings: settings),
        .testTarget(name: "SimulatedRedisTests", dependencies: ["SimulatedRedis"], swiftSettings: settings),
    ]
)
