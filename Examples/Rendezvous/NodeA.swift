import Hiredis
import RedisDC

/// Runs side A of the rendezvous: a1 comes before b2, and b1 before a2.
///
///     a1
///     aArrived.signal()
///     bArrived.wait()
///     a2
func nodeA(_ run: Run, redis: RedisClient) async throws {
    let aArrived = try ClassicSemaphore("\(run.name):a-arrived", redis: redis)
    let bArrived = try ClassicSemaphore("\(run.name):b-arrived", redis: redis)
    try await aArrived.create(permits: 0)
    try await bArrived.create(permits: 0)

    for round in 1...run.rounds {
        try await run.log("a1", round, redis)
        try await aArrived.signal()
        try await bArrived.wait()
        try await run.log("a2", round, redis)
    }
}
