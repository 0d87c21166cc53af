import CoordinationBase
import Testing

@testable import GameServices
@testable import Hiredis
@testable import QueueListen
@testable import RedisDC

@Suite("An error of Redis")
struct ErrorMappingTests {
    @Test("is the same kind of failure to all libraries", arguments: RedisError.Code.all, [false, true])
    func agreement(code: RedisError.Code, mayHaveRun: Bool) {
        let error = RedisError(code, "the server's text", mayHaveRun: mayHaveRun)
        let coordination = RedisDCError(error, key: "rdc:key")
        let mail = QueueListenError(error)
        let game = GameServiceError(error)
        #expect(Set(["\(coordination.code)", "\(mail.code)", "\(game.code)"]).count == 1)
        for hasRun in [coordination.mayHaveRun, mail.mayHaveRun, game.mayHaveRun] {
            #expect(hasRun == mayHaveRun)
        }
        for message in [coordination.message, mail.message, game.message] {
            #expect(message.contains("the server's text"))
        }
        for cause in [coordination.underlying, mail.underlying, game.underlying] {
            #expect((cause as? RedisError)?.code == code)
        }
    }

    @Test("that is out of memory, or has no connection left, says so")
    func codes() {
        #expect(RedisDCError(RedisError(.outOfMemory, ""), key: "").code == .outOfMemory)
        #expect(RedisDCError(RedisError(.tooManyLanes, ""), key: "").code == .notConnected)
        #expect(RedisDCError(RedisError(.timedOut, "", mayHaveRun: true), key: "").code == .connectionLost)
        #expect(RedisDCError(RedisError(.timedOut, ""), key: "").code == .notConnected)
    }

    @Test("that coordination retries is one that is transient", arguments: RedisError.Code.all)
    func retries(code: RedisError.Code) {
        let error = RedisError(code, "")
        let keys = PartitionKeys(Namespace("a", partitions: 1), partition: 0)
        let isRetried = if case .retry = EngineStateMachine.Failure(error, keys: keys) { true } else { false }
        #expect(isRetried == error.isTransient)
    }
}
