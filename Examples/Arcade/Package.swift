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
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (strict ? [.unsafeFlags(["-warnings-as-errors"])] : [])

let package = Package(
    name: "Arcade",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "BET", targets: ["BET"])
    ],
    targets: [
        .target(name: "BET", swiftSettings: settings),
        // The table is read where it lies, because the tests in JavaScript read the same file.
        .testTarget(
            name: "BETTests", dependencies: ["BET"], exclude: ["cases.json"], swiftSettings: settings),
    ]
)
