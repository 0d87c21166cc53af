#if MetricsSupport
    import CoreMetrics

    /// The metrics of a client.
    struct Meters: Sendable {
        let commands: Counter
        let failures: Counter
        let duration: Timer
        let lanes: Gauge
        let gaps: Counter
        let redirects: [String: Counter]
        let reconnects: [String: Counter]

        init(_ factory: any MetricsFactory) {
            commands = Counter(label: "redis_commands", factory: factory)
            failures = Counter(label: "redis_command_failures", factory: factory)
            duration = Timer(label: "redis_command_duration", factory: factory)
            lanes = Gauge(label: "redis_lanes", factory: factory)
            gaps = Counter(label: "redis_subscription_gaps", factory: factory)
            redirects = Dictionary(
                uniqueKeysWithValues: ["moved", "ask", "again"].map {
                    ($0, Counter(label: "redis_redirects", dimensions: [("kind", $0)], factory: factory))
                })
            reconnects = Dictionary(
                uniqueKeysWithValues: ["command", "subscription"].map {
                    ($0, Counter(label: "redis_reconnects", dimensions: [("connection", $0)], factory: factory))
                })
        }
    }
#endif
