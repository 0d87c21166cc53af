import LittleBook
import RedisDCTesting
import TestSupport
import Testing

/// Every problem with real processes. Runs without a death are serialized, because each keeps all
/// cores busy. Runs with a death mostly wait, so the chapters run in parallel.
@Suite("Problems run by processes")
struct ProblemRunTests {
    private func littlebook(_ words: String..., url: String) async throws -> Child.End {
        try await Child("littlebook", words, environment: ["REDIS_URL": url]).end()
    }

    @Test("a run finishes, and every invariant holds", .serialized, arguments: Book.problems.map(\.name))
    func plain(_ problem: String) async throws {
        try await withLocalRedis { server in
            let end = try await littlebook(problem, "--rounds", "5", "--limit", "300", url: server.url)
            #expect(end.status == 0, "\(end.output)\n\(end.error)")
            #expect(end.output.contains("right: "))
        }
    }

    private static func problems(_ chapter: Chapter) -> [String] {
        Book.problems.filter { $0.chapter == chapter }.map(\.name)
    }

    @Test(
        "the basic patterns hold when a process is killed and restarted", .serialized, arguments: problems(.basics))
    func killedBasics(_ problem: String) async throws { try await killed(problem) }

    @Test(
        "the classical problems hold when a process is killed and restarted", .serialized,
        arguments: problems(.classical))
    func killedClassical(_ problem: String) async throws { try await killed(problem) }

    @Test(
        "the less classical problems hold when a process is killed and restarted", .serialized,
        arguments: problems(.lessClassical))
    func killedLessClassical(_ problem: String) async throws { try await killed(problem) }

    @Test(
        "the not-so-classical problems hold when a process is killed and restarted", .serialized,
        arguments: problems(.notSoClassical))
    func killedNotSoClassical(_ problem: String) async throws { try await killed(problem) }

    @Test(
        "the not remotely classical problems hold when a process is killed and restarted", .serialized,
        arguments: problems(.notRemotelyClassical))
    func killedNotRemotelyClassical(_ problem: String) async throws { try await killed(problem) }

    private func killed(_ problem: String) async throws {
        try await withLocalRedis { server in
            let end = try await littlebook(problem, "--rounds", "5", "--kill", "--limit", "300", url: server.url)
            #expect(end.status == 0, "\(end.output)\n\(end.error)")
            #expect(end.output.contains("killed and restarted"))
        }
    }

    @Test("a problem has at least three processes and a unique name", arguments: Book.problems.map(\.name))
    func cast(_ name: String) throws {
        let problem = try #require(Book.problem(name))
        #expect(Book.problems.count { $0.name == name } == 1)
        #expect(problem.processes >= 3)
        for processes in [problem.minProcesses, problem.processes, 12] where processes >= problem.minProcesses {
            let roles = problem.cast(processes)
            #expect(roles.map(\.count).reduce(0, +) == processes, "\(name) with \(processes)")
            #expect(roles.allSatisfy { $0.count >= 1 })
            #expect(roles.contains { $0.roundEnd != nil })
        }
    }
}
