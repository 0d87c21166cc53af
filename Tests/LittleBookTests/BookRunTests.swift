import LittleBook
import RedisDCTesting
import TestSupport
import Testing

/// Every problem with real processes. One at a time: each has the machine's cores busy by itself.
@Suite("The problems of the book, played by processes", .serialized)
struct BookRunTests {
    private func book(_ words: String..., url: String) async throws -> Child.End {
        try await Child("redisdc", ["book"] + words, environment: ["REDIS_URL": url]).end()
    }

    @Test("comes to its end, and every invariant holds", arguments: Book.problems.map(\.name))
    func plain(_ problem: String) async throws {
        try await withLocalRedis { server in
            let end = try await book(problem, "--rounds", "5", url: server.url)
            #expect(end.status == 0, "\(end.output)\n\(end.error)")
            #expect(end.output.contains("right: "))
        }
    }

    @Test("holds too when a process is killed with -9 and started again", arguments: Book.problems.map(\.name))
    func killed(_ problem: String) async throws {
        try await withLocalRedis { server in
            let end = try await book(problem, "--rounds", "5", "--kill", url: server.url)
            #expect(end.status == 0, "\(end.output)\n\(end.error)")
            #expect(end.output.contains("killed and restarted"))
        }
    }

    @Test("is played by at least three processes, and found by its name", arguments: Book.problems.map(\.name))
    func cast(_ name: String) throws {
        let problem = try #require(Book.problem(name))
        #expect(Book.problems.count { $0.name == name } == 1)
        #expect(problem.processes >= 3)
        for processes in [problem.fewest, problem.processes, 12] where processes >= problem.fewest {
            let roles = problem.cast(processes)
            #expect(roles.map(\.count).reduce(0, +) == processes, "\(name) with \(processes)")
            #expect(roles.allSatisfy { $0.count >= 1 })
            #expect(roles.contains { $0.roundEnd != nil })
        }
    }
}
