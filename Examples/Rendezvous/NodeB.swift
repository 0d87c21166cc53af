import Hiredis
import RedisDC

/// Runs side B of the rendezvous: b1 comes before a2, and a1 before b2.
///
///     b1
///     bArrived.signal()
///     aArrived.wait()
///     b2
func nodeB(_ run: Run, redis: RedisClient) async throws {
    let aArrived = try ClassicSemaphore("\(run.name):a-arrived", redis: redis)
    let bArrived = try ClassicSemaphore("\(run.name):b-arrived", redis: redis)
    try await aArrived.create(permits: 0)
    try await bArrived.create(permits: 0)

    for round in 1...run.rounds {
        try await run.log("b1", round, redis)
        try await bArrived.signal()
        try await aArrived.wait()
        try await run.log("b2", round, redis)
    }
}
