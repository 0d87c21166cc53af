// Commands on a connection of their own, for what must not keep others waiting.
import NIOCore

extension RedisClient {
    public func exclusive(_ commands: [RedisCommand], timeout: Duration?) async throws -> [RESPValue] {
        try await instruments.measure("EXCLUSIVE", size: commands.count) {
            let lane = try await lanes.take()
            let limit = timeout.map { TimeAmount($0) } ?? link.commandTimeout
            switch await lane.send(pipeline: commands, timeout: limit) {
            case .success(let reply):
                lanes.put(lane)
                return reply.array ?? []
            case .failure(let error):
                // It may still be busy with what nobody waits for any more.
                lanes.drop(lane)
                throw error
            }
        }
    }
}
