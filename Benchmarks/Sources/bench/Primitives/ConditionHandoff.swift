import Hiredis
import RedisDC

/// Two processes take turns under a mutex, each waiting on its own condition: whose turn it is stands in Redis.
enum ConditionHandoff {
    static func run(
        url: String, rounds: Int, prefix: String, placement: Placement, isPeer: Bool
    ) async throws -> Figures {
        try await withBenchCoordinator(url: url, namespace: prefix) { redis, coordinator in
            let mutex = try coordinator.mutex("turns")
            let (mine, other) = isPeer ? ("b", "a") : ("a", "b")
            let (my, their) = (try mutex.condition(mine), try mutex.condition(other))
            let turn = RedisArgument.string("{\(prefix)}turn")
            return try await placement.run(redis) {
                var histogram = Figures.makeHistogram()
                var last = monotonicNow()
                for round in -Handoff.warmUp..<rounds {
                    try await mutex.withLock { lease in
                        // At first it is nobody's: that is the first one's.
                        while (try await redis.send("GET", turn).string ?? "a") != mine { try await my.wait(lease) }
                        _ = try await redis.send("SET", turn, .string(other))
                        try await their.notify()
                    }
                    let now = monotonicNow()
                    if round >= 0 { _ = histogram.record(UInt64((now - last) / 2)) }
                    last = now
                }
                return Figures(histogram)
            }
        }
    }
}
