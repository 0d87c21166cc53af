import QueueListen

/// Measures 64 tasks that each send one message after another to the same mailboxes over one connection.
enum Sends {
    static let tasks = 64

    /// - Returns: Sends per second of all tasks together.
    static func run(url: String, recipients: Int, each: Int, prefix: String, placement: Placement) async throws
        -> Double
    {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            let names = (0..<recipients).map { "m\($0)" }
            return try await placement.run(redis) {
                try await sendAll(office, names, each: each / 10 + 1)
                let start = monotonicNow()
                try await sendAll(office, names, each: each)
                return Double(tasks * each) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }

    /// Measures tasks that each send to a mailbox of their own.
    ///
    /// - Returns: Sends per second of all tasks together.
    static func spread(url: String, each: Int, prefix: String, placement: Placement, partitions: Int) async throws
        -> Double
    {
        try await withBenchOffice(url: url, namespace: prefix, partitions: partitions) { redis, office in
            try await placement.run(redis) {
                try await sendAll(office, nil, each: each / 10 + 1)
                let start = monotonicNow()
                try await sendAll(office, nil, each: each)
                return Double(tasks * each) / (Double(monotonicNow() - start) / 1e9)
            }
        }
    }

    /// - Parameter names: The recipients; `nil` for a mailbox for each task.
    private static func sendAll(_ office: PostOffice, _ names: [String]?, each: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks {
                let names = names ?? ["m\(task)"]
                group.addTask {
                    for _ in 0..<each { try await office.send([.bench], to: names) }
                }
            }
            try await group.waitForAll()
        }
    }
}
