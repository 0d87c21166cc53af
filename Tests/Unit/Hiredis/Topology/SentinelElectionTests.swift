import Testing

@testable import Hiredis

@Suite("The answers of sentinels")
struct SentinelElectionTests {
    private func election(_ sentinels: Int, _ answers: (port: Int, epoch: Int)...) -> SentinelElection {
        var election = SentinelElection(sentinels: sentinels)
        for answer in answers {
            election.add(.init(endpoint: .tcp(host: "10.0.0.1", port: answer.port), epoch: answer.epoch))
        }
        return election
    }

    private func port(_ answer: SentinelElection.Answer?) -> Int? {
        if case .tcp(_, let port)? = answer?.endpoint { port } else { nil }
    }

    @Test("the address that more than half of all sentinels name is the master")
    func majority() {
        #expect(port(election(1, (1, 0)).master) == 1)
        #expect(port(election(3, (1, 0), (1, 0)).master) == 1)
        #expect(port(election(3, (2, 0), (1, 0), (1, 0)).master) == 1)
        #expect(port(election(5, (1, 0), (2, 0), (1, 0), (1, 0)).master) == 1)
    }

    @Test("half of all sentinels is no majority, and neither is a majority of the answers")
    func noMajority() {
        #expect(election(3).master == nil)
        #expect(election(3, (1, 0)).master == nil)
        #expect(election(4, (1, 0), (1, 0)).master == nil)
        #expect(election(3, (1, 0), (2, 0)).master == nil)
        #expect(election(5, (1, 0), (1, 0), (2, 0)).master == nil)
    }

    @Test("the master of a majority does not count while another sentinel knows a newer one")
    func superseded() {
        let during = election(3, (1, 4), (2, 5), (1, 4))
        #expect(port(during.majority) == 1 && during.master == nil && port(during.newest) == 2)
        #expect(port(election(3, (2, 5), (2, 5), (1, 4)).master) == 2)
    }

    @Test("sentinels that know the same address in different configurations agree")
    func sameAddress() {
        let election = election(3, (1, 4), (1, 5), (1, 4))
        #expect(port(election.master) == 1 && election.master?.epoch == 5)
    }

    @Test("an answer consists of the address and the epoch")
    func answer() {
        func text(_ text: String) -> RESPValue { .bytes(Array(text.utf8)) }
        let address = RESPValue.array([text("10.0.0.1"), text("6379")])
        let fields = RESPValue.array(["name", "main", "config-epoch", "7", "quorum", "2"].map(text))
        let answer = SentinelElection.Answer([address, fields])
        #expect(answer == .init(endpoint: .tcp(host: "10.0.0.1", port: 6379), epoch: 7))
        #expect(SentinelElection.Answer([.null, .error("ERR No such master with that name")]) == nil)
        #expect(SentinelElection.Answer([address, .array([text("config-epoch")])]) == nil)
        #expect(SentinelElection.Answer([]) == nil)
    }
}
