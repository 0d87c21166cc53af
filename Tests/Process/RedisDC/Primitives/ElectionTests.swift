import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Election", .serialized)
    struct ElectionTests {
        @Test("a leader that is killed with -9 is followed by the next, with a higher term")
        func death() async throws {
            try await withNodes { node, server, redis in
                let victim = try Child("redisdc-worker", ["engine-hold", server.url, "e"])
                let election = try node.election("e")
                try await until("it leads") { try await election.leader() != nil }
                let first = try #require(try await election.leader())
                let seen = Leaders(election)
                try await until("it is known who leads") { await seen.last == first }
                try await victim.kill9()
                let term = try await election.campaign(timeout: .seconds(60))
                #expect(term.fence > first.term)
                try await until("it is known who follows") { await seen.last??.term == term.fence }
                try await election.resign(term)
            }
        }
    }
}
