// swift-tools-version:6.2
import PackageDescription

// Set by scripts/test: a warning of ours fails the build there, never the build of someone who depends on us.
let strict = Context.environment["REDISDC_WARNINGS_AS_ERRORS"] != nil

// Set by scripts/test for the build with ThreadSanitizer, which leaves out what those tests do not use.
let isSanitized = Context.environment["REDISDC_SANITIZED"] != nil

let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ] + (strict ? [.unsafeFlags(["-warnings-as-errors"])] : [])

// hiredis.pc carries a flag that SwiftPM refuses on Linux with a warning at every build, and the module map links the
// library by itself; Homebrew's include path is only found through pkg-config.
#if os(macOS)
    let hiredisPkgConfig: String? = "hiredis"
#else
    let hiredisPkgConfig: String? = nil
#endif

// MARK: Dependencies behind traits

func product(_ name: String, _ package: String, _ trait: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: [trait]))
}

let logging = product("Logging", "swift-log", "LoggingSupport")
let metrics = product("Metrics", "swift-metrics", "MetricsSupport")
let tracing = product("Tracing", "swift-distributed-tracing", "TracingSupport")
let lifecycle = product("ServiceLifecycle", "swift-service-lifecycle", "ServiceLifecycleSupport")
let tls = product("NIOSSL", "swift-nio-ssl", "TLSSupport")

// MARK: Tests

let testedMetrics = [metrics, product("MetricsTestKit", "swift-metrics", "MetricsSupport")]
let testedTracing = [tracing, product("InMemoryTracing", "swift-distributed-tracing", "TracingSupport")]
let testedLifecycle = [
    lifecycle, product("ServiceLifecycleTestKit", "swift-service-lifecycle", "ServiceLifecycleSupport"),
]

// The dependencies of the tests of a module, of all kinds.
let ofHiredis: [Target.Dependency] =
    [
        "Hiredis", "CHiredis", "RedisDCTesting", "TestSupport", "TestRandom",
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        logging,
    ] + testedMetrics + testedTracing + testedLifecycle
let ofRedisDC: [Target.Dependency] =
    [
        "RedisDC", "Hiredis", "CoordinationBase", "RedisDCTesting", "TestSupport", "TestRandom", "TestHistory",
        "TestKinds", logging,
    ] + testedMetrics + testedTracing
let ofQueueListen: [Target.Dependency] =
    ["QueueListen", "Hiredis", "CoordinationBase", "RedisDCTesting", "TestSupport", "TestRandom", logging]
    + testedMetrics + testedTracing + testedLifecycle
let ofGameServices: [Target.Dependency] =
    [
        "GameServices", "RedisDC", "QueueListen", "Hiredis", "CoordinationBase", "RedisDCTesting", "TestSupport",
        "TestRandom",
    ] + testedMetrics
let ofTool: [Target.Dependency] = [
    "RedisDCTool", "RedisDC", "QueueListen", "GameServices", "Hiredis", "CoordinationBase", "CommandLineTool",
    "RedisDCTesting", "TestSupport", "Verification",
    .product(name: "ArgumentParser", package: "swift-argument-parser"),
]

/// The tests of a module that need the same: CONTRIBUTING.md describes the kinds.
func tests(
    _ kind: String, of module: String, _ dependencies: [Target.Dependency], exclude: [String] = []
) -> Target {
    .testTarget(
        name: "\(module)\(kind)Tests", dependencies: dependencies, path: "Tests/\(kind)/\(module)", exclude: exclude,
        swiftSettings: settings)
}

/// The helpers that several kinds of tests of a module share: a test target without tests, so that it may use what is
/// internal to the module.
func testSupport(of module: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(
        name: "\(module)TestSupport", dependencies: dependencies, path: "Tests/Support/\(module)",
        swiftSettings: settings)
}

let package = Package(
    name: "redisdc",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "Hiredis", targets: ["Hiredis"]),
        .library(name: "RedisDC", targets: ["RedisDC"]),
        .library(name: "QueueListen", targets: ["QueueListen"]),
        .library(name: "GameServices", targets: ["GameServices"]),
        .library(name: "RedisDCTesting", targets: ["RedisDCTesting"]),
        .executable(name: "redisdc", targets: ["RedisDCTool"]),
        .executable(name: "rendezvous", targets: ["rendezvous"]),
        .executable(name: "mailbox", targets: ["mailbox"]),
        .executable(name: "littlebook", targets: ["LittleBookTool"]),
    ],
    traits: [
        .trait(name: "TLSSupport", description: "Connect to Redis with TLS, by swift-nio-ssl."),
        .trait(name: "LoggingSupport", description: "Log with swift-log."),
        .trait(name: "MetricsSupport", description: "Count and time commands with swift-metrics."),
        .trait(name: "TracingSupport", description: "A span for each command with swift-distributed-tracing."),
        .trait(name: "ServiceLifecycleSupport", description: "RedisClient is a Service of swift-service-lifecycle."),
        .default(enabledTraits: [
            "TLSSupport", "LoggingSupport", "MetricsSupport", "TracingSupport", "ServiceLifecycleSupport",
        ]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.81.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.29.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.5.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CHiredis",
            pkgConfig: hiredisPkgConfig,
            providers: [.apt(["libhiredis-dev"]), .yum(["hiredis-devel"]), .brew(["hiredis"])]
        ),
        .target(
            name: "Hiredis",
            dependencies: [
                "CHiredis",
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "DequeModule", package: "swift-collections"),
                tls, logging, metrics, tracing, lifecycle,
            ],
            swiftSettings: settings
        ),
        .target(name: "CoordinationBase", dependencies: ["Hiredis"], swiftSettings: settings),
        .target(
            name: "RedisDC",
            dependencies: [
                "Hiredis", "CoordinationBase",
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "DequeModule", package: "swift-collections"),
                logging, metrics, lifecycle,
            ],
            exclude: ["Lua"],
            resources: [.embedInCode("Scripts")],
            swiftSettings: settings
        ),
        .target(
            name: "QueueListen",
            dependencies: [
                "Hiredis", "CoordinationBase",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                logging, metrics, lifecycle,
            ],
            exclude: ["Lua"],
            resources: [.embedInCode("Scripts")],
            swiftSettings: settings
        ),
        // Starts and reaps programs, for the tools of the package and for RedisDCTesting.
        .target(name: "ChildProcesses", swiftSettings: settings),
        .target(
            name: "RedisDCTesting",
            dependencies: [
                "Hiredis", "ChildProcesses",
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "GameServices",
            dependencies: [
                "QueueListen", "Hiredis", "CoordinationBase",
                .product(name: "DequeModule", package: "swift-collections"),
                logging, metrics, lifecycle,
            ],
            exclude: ["Lua"],
            resources: [.embedInCode("Scripts")],
            swiftSettings: settings
        ),
        // The code that the package's command-line tools share.
        .target(
            name: "CommandLineTool",
            dependencies: [
                "RedisDC", "Hiredis", "RedisDCTesting",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        // The histories of `redisdc verify` and their judge, which need no Redis.
        .target(name: "Verification", swiftSettings: settings),
        .executableTarget(
            name: "RedisDCTool",
            dependencies: [
                "RedisDC", "QueueListen", "Hiredis", "CoordinationBase", "RedisDCTesting", "ChildProcesses",
                "CommandLineTool", "Verification", "GameServices",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "rendezvous",
            dependencies: ["RedisDC", "Hiredis"],
            path: "Examples/Rendezvous",
            exclude: ["README.md"],
            swiftSettings: settings
        ),
        .target(
            name: "LittleBook",
            dependencies: ["RedisDC", "Hiredis"],
            path: "Examples/LittleBook",
            exclude: ["README.md", "Tool"],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "LittleBookTool",
            dependencies: [
                "LittleBook", "RedisDC", "Hiredis", "ChildProcesses", "CommandLineTool",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/LittleBook/Tool",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "mailbox",
            dependencies: ["QueueListen", "Hiredis"],
            path: "Examples/Mailbox",
            exclude: ["README.md", "run.sh"],
            swiftSettings: settings
        ),
        testSupport(of: "Hiredis", ofHiredis),
        tests("Unit", of: "Hiredis", ofHiredis + ["HiredisTestSupport"]),
        tests("Concurrency", of: "Hiredis", ofHiredis + ["HiredisTestSupport"]),
        tests("Deployment", of: "Hiredis", ofHiredis + ["HiredisTestSupport"]),

        testSupport(of: "RedisDC", ofRedisDC),
        tests("Unit", of: "RedisDC", ofRedisDC + ["RedisDCTestSupport"]),
        tests("Integration", of: "RedisDC", ofRedisDC + ["RedisDCTestSupport"]),
        tests("Concurrency", of: "RedisDC", ofRedisDC + ["RedisDCTestSupport"]),
        tests("Deployment", of: "RedisDC", ofRedisDC + ["RedisDCTestSupport"]),
        tests("Process", of: "RedisDC", ofRedisDC + ["RedisDCTestSupport", "redisdc-worker", "Verification"]),

        testSupport(of: "QueueListen", ofQueueListen),
        tests("Unit", of: "QueueListen", ofQueueListen + ["QueueListenTestSupport"]),
        tests("Integration", of: "QueueListen", ofQueueListen + ["QueueListenTestSupport"]),
        tests("Concurrency", of: "QueueListen", ofQueueListen + ["QueueListenTestSupport"]),
        tests("Deployment", of: "QueueListen", ofQueueListen + ["QueueListenTestSupport"]),
        tests("Process", of: "QueueListen", ofQueueListen + ["QueueListenTestSupport", "redisdc-worker"]),

        testSupport(of: "GameServices", ofGameServices),
        tests("Unit", of: "GameServices", ofGameServices),
        tests("Integration", of: "GameServices", ofGameServices + ["GameServicesTestSupport"]),
        tests("Deployment", of: "GameServices", ofGameServices + ["GameServicesTestSupport"]),
        tests("Process", of: "GameServices", ofGameServices + ["GameServicesTestSupport", "services-worker"]),

        tests(
            "Deployment", of: "Security",
            ["RedisDC", "QueueListen", "Hiredis", "RedisDCTesting", "TestSupport", "TestKinds", "GameServices"]),

        testSupport(of: "RedisDCTool", ofTool),
        tests("Unit", of: "RedisDCTool", ofTool + ["RedisDCToolTestSupport"]),
        tests("Integration", of: "RedisDCTool", ofTool + ["RedisDCToolTestSupport", "mailbox"]),
        tests("Deployment", of: "RedisDCTool", ofTool + ["RedisDCToolTestSupport"]),
        tests("Process", of: "RedisDCTool", ofTool + ["RedisDCToolTestSupport", "rendezvous"]),

        tests("Unit", of: "LittleBook", ["LittleBook"], exclude: ["Forged"]),
        tests(
            "Process", of: "LittleBook",
            ["LittleBook", "LittleBookTool", "RedisDC", "Hiredis", "RedisDCTesting", "TestSupport"]),

        testSupport(of: "RedisDCTesting", ["RedisDCTesting", "Hiredis", "ChildProcesses"]),
        tests(
            "Integration", of: "RedisDCTesting",
            ["RedisDCTesting", "Hiredis", "ChildProcesses", "TestSupport", "RedisDCTestingTestSupport"]),
        tests(
            "Deployment", of: "RedisDCTesting",
            ["RedisDCTesting", "Hiredis", "TestSupport", "RedisDCTestingTestSupport"]),
        tests(
            "Process", of: "RedisDCTesting",
            ["RedisDCTesting", "Hiredis", "TestSupport", "RedisDCTestingTestSupport"]),

        .target(
            name: "TestSupport",
            dependencies: ["Hiredis", "CoordinationBase", "RedisDCTesting", "ChildProcesses", "TestRandom", logging],
            path: "Tests/Support/Shared", swiftSettings: settings),
        // Without Testing, because the worker has them too.
        .target(name: "TestRandom", path: "Tests/Support/Random", swiftSettings: settings),
        .target(
            name: "TestHistory", dependencies: ["RedisDC", "TestRandom"], path: "Tests/Support/History",
            swiftSettings: settings),
        .target(
            name: "TestKinds", dependencies: ["RedisDC", "TestRandom"], path: "Tests/Support/Kinds",
            swiftSettings: settings),
        .executableTarget(
            name: "redisdc-worker",
            dependencies: [
                "RedisDC", "QueueListen", "Hiredis", "TestRandom", "TestHistory", "TestKinds", "Verification",
            ],
            path: "Tests/Worker", swiftSettings: settings),
        .executableTarget(
            name: "services-worker",
            dependencies: ["GameServices", "QueueListen", "Hiredis"],
            path: "Tests/ServicesWorker", swiftSettings: settings),
    ]
)

if isSanitized {
    // Compiling tests takes most of the build, so only these and what they use are left.
    var used = Set(package.targets.map(\.name).filter { $0.hasSuffix("ConcurrencyTests") })
    var count = 0
    while used.count > count {
        count = used.count
        for target in package.targets where used.contains(target.name) {
            for case .byNameItem(let name, _) in target.dependencies { used.insert(name) }
        }
    }
    package.targets.removeAll { !used.contains($0.name) }
    package.products.removeAll { !used.contains($0.name) }
}
