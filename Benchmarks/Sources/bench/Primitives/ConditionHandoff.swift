import Hiredis
import RedisDC

/// Measures two processes that take turns under a mutex, each of which waits on its own condition. A key in Redis says
/// whose turn it is.
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
                        // The key does not exist at first: then it is the turn of "a".
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
