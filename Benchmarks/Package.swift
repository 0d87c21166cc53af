// swift-tools-version:6.2
import PackageDescription

// A separate package, so that the dependencies of the benchmarks never reach users of the library.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "redisdc", path: ".."),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift.git", from: "0.1.3"),
    ],
    targets: [
        .executableTarget(
            name: "baseline",
            cSettings: [.unsafeFlags(["-O2"])],
            linkerSettings: [.linkedLibrary("hiredis")]
        ),
        .executableTarget(
            name: "bench",
            dependencies: [
                .product(name: "Hiredis", package: "redisdc"),
                .product(name: "RedisDC", package: "redisdc"),
                .product(name: "QueueListen", package: "redisdc"),
                .product(name: "GameServices", package: "redisdc"),
                .product(name: "RedisDCTesting", package: "redisdc"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6), .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ]
        ),
    ]
)
