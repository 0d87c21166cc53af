import LittleBook
import RedisDCTesting
import TestSupport
import Testing

/// Every problem with real processes. One after the other, since each has the machine's cores busy by itself; those with a
/// death wait most of the time, so that the chapters go side by side.
@Suite("The problems of the book, played by processes")
struct BookRunTests {
    private func book(_ words: String..., url: String) async throws -> Child.End {
        try await Child("redisdc", ["book"] + words, environment: ["REDIS_URL": url]).end()
    }

    @Test("comes to its end, and every invariant holds", .serialized, arguments: Book.problems.map(\.name))
    func plain(_ problem: String) async throws {
        try await withLocalRedis { server in
            let end = try await book(problem, "--rounds", "5", url: server.url)
            #expect(end.status == 0, "\(end.output)\n\(end.error)")
            #expect(end.output.contains("right: "))
        }
    }

    private static func problems(_ chapter: Chapter) -> [String] {
        Book.problems.filter { $0.chapter == chapter }.map(\.name)
    }

    @Test(
        "the basics hold when a process is killed with -9 and started again", .serialized, arguments: problems(.basics))
    func killedBasics(_ problem: String) async throws { try await killed(problem) }

    @Test("so do the classical ones", .serialized, arguments: problems(.classical))
    func killedClassical(_ problem: String) async throws { try await killed(problem) }

    @Test("so do the less classical ones", .serialized, arguments: problems(.lessClassical))
    func killedLessClassical(_ problem: String) async throws { try await killed(problem) }

    @Test("so do the not-so-classical ones", .serialized, arguments: problems(.notSoClassical))
    func killedNotSoClassical(_ problem: String) async throws { try await killed(problem) }

    @Test("so do the not remotely classical ones", .serialized, arguments: problems(.notRemotelyClassical))
    func killedNotRemotelyClassical(_ problem: String) async throws { try await killed(problem) }

    private func killed(_ problem: String) async throws {
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
