import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The map of the slots of a cluster")
struct SlotMapTests {
    private func masters(_ text: String) -> [SlotMap.Master] {
        SlotMap.Master.all(in: text) { .tcp(host: $0.isEmpty ? "asked" : $0, port: $1) }
    }

    private func master(_ port: Int, _ epoch: Int, _ slots: ClosedRange<Int>...) -> SlotMap.Master {
        SlotMap.Master(endpoint: .tcp(host: "h", port: port), epoch: epoch, slots: slots)
    }

    private func port(_ map: SlotMap, _ slot: Int) -> Int? {
        if case .tcp(_, let port)? = map.owner(of: slot) { port } else { nil }
    }

    @Test("the masters with slots are read from the description of a server")
    func parsing() {
        let text = """
            a1 127.0.0.1:7000@17000 myself,master - 0 0 3 connected 0-99 200 [5->-b2] [6-<-c3]
            b2 :7001@17001,host.example master - 0 1 4 connected 100-199
            c3 127.0.0.1:7002@17002 slave a1 0 1 3 connected
            d4 127.0.0.1:7003@17003 master,fail - 0 1 2 disconnected 300-400
            e5 127.0.0.1:7004@17004 master - 0 1 9 connected
            f6 2001:db8::1:7005@17005 master - 0 1 5 connected 16383

            """
        #expect(
            masters(text) == [
                .init(
                    endpoint: .tcp(host: "127.0.0.1", port: 7000), epoch: 3, slots: [0...99, 200...200], isSelf: true),
                .init(endpoint: .tcp(host: "asked", port: 7001), epoch: 4, slots: [100...199]),
                .init(endpoint: .tcp(host: "2001:db8::1", port: 7005), epoch: 5, slots: [16383...16383]),
            ])
    }

    @Test("preferred hosts replace the addresses of the servers that have one")
    func preferredHosts() {
        let text = """
            a1 127.0.0.1:7000@17000,a.example myself,master - 0 0 3 connected 0-99
            b2 127.0.0.1:7001@17001,b.example,shard-id=0 master - 0 1 4 connected 100-199
            c3 127.0.0.1:7002@17002,,shard-id=0 master - 0 1 5 connected 200-299

            """
        func server(_ host: RESPValue, _ port: Int, _ id: String) -> RESPValue {
            .array([host, .integer(port), .bytes(Array(id.utf8)), .array([])])
        }
        let name = RESPValue.bytes(Array("a.example".utf8))
        let reply = RESPValue.array([
            .array([.integer(0), .integer(99), server(name, 7000, "a1"), server(.null, 7001, "b2")]),
            .array([.integer(200), .integer(299), server(.bytes(Array("?".utf8)), 7002, "c3")]),
            .array([.integer(300)]), .null,
        ])
        let masters = SlotMap.Master.all(in: text, preferred: PreferredHosts(slots: reply)) {
            .tcp(host: $0.isEmpty ? "asked" : $0, port: $1)
        }
        let expected: [SlotMap.Endpoint] = [
            .tcp(host: "a.example", port: 7000), .tcp(host: "asked", port: 7001), .tcp(host: "127.0.0.1", port: 7002),
        ]
        #expect(masters.map(\.endpoint) == expected)
        #expect(PreferredHosts(slots: .error("NOPERM no permissions")) == PreferredHosts())
    }

    @Test(
        "the preferred hosts are asked for if a server has a name",
        arguments: [
            ("a1 127.0.0.1:7000@17000,a.example master", true), ("a1 :7000@17000,a.example,shard-id=0 master", true),
            ("a1 127.0.0.1:7000@17000 master", false), ("a1 127.0.0.1:7000@17000,,shard-id=0 master", false),
            ("", false),
        ])
    func preferredHostsNeeded(line: String, isNeeded: Bool) {
        #expect(PreferredHosts.areNeeded(for: line) == isNeeded)
        #expect(PreferredHosts.areNeeded(for: "b2 :1@2 master\n\(line)\n") == isNeeded)
    }

    @Test(
        "a description that makes no sense is ignored",
        arguments: [
            "", "x", "a h:1@2 master - 0 0 1 connected 5-4", "a h:1@2 master - 0 0 1 connected 16384",
            "a h:1@2 master - 0 0 1 connected -1", "a h:1@2 master - 0 0 one connected 1",
            "a h@2 master - 0 0 1 connected 1",
            "a h:x@2 master - 0 0 1 connected 1", "a h:1@2 master - 0 0 1 connected 1-2-3",
        ])
    func nonsense(text: String) { #expect(masters(text).isEmpty) }

    @Test("of two servers that claim a slot, the one with the higher epoch has it, in any order")
    func epochs() {
        let (old, new) = (master(1, 3, 0...16383), master(2, 4, 100...199))
        for descriptions in [[[old], [new]], [[new], [old]], [[old, new]], [[new, old]]] {
            let map = SlotMap(descriptions)
            #expect(port(map, 99) == 1 && port(map, 100) == 2 && port(map, 199) == 2 && port(map, 200) == 1)
            #expect(map.masters.count == 2 && (0..<16384).allSatisfy { map.owner(of: $0) != nil })
        }
    }

    @Test("an old description does not replace a newer one that was known before")
    func memory() {
        let known = SlotMap([[master(2, 4, 0...16383)]])
        #expect(port(SlotMap([[master(1, 3, 0...16383)]], previous: known), 7) == 2)
        #expect(port(SlotMap([[master(1, 5, 0...16383)]], previous: known), 7) == 1)
        #expect(SlotMap([[master(1, 3, 0...16383)]], previous: known).masters == [.tcp(host: "h", port: 2)])
    }

    @Test("a server that describes itself may serve no slot", arguments: ["master", "slave"])
    func withoutSlots(role: String) {
        let text = "a1 127.0.0.1:7000@17000 myself,\(role) - 0 0 3 connected\nb2 :7001@17001 \(role) - 0 1 4 connected"
        #expect(
            masters(text) == [.init(endpoint: .tcp(host: "127.0.0.1", port: 7000), epoch: 3, slots: [], isSelf: true)])
    }

    @Test("what a server says of itself replaces what others and the previous map say of it, up to its epoch")
    func selves() {
        // A server with a high epoch has given a slot to one with a lower epoch.
        let known = SlotMap([[master(1, 5, 7...7), master(2, 4, 8...16383)]])
        let giver = SlotMap.Master(endpoint: master(1, 5).endpoint, epoch: 5, slots: [], isSelf: true)
        let taker = SlotMap.Master(endpoint: master(2, 4).endpoint, epoch: 4, slots: [7...16383], isSelf: true)
        let stale = [master(1, 5, 7...7), master(2, 4, 8...16383)]
        for descriptions in [
            [[giver], [taker]], [[taker], [giver, master(2, 4, 7...16383)], stale], [stale, [giver], [taker]],
        ] {
            let map = SlotMap(descriptions, previous: known)
            #expect(port(map, 7) == 2 && map.masters == [master(2, 4).endpoint])
        }
        // While nobody claims the slot, it stays: the next map shows its move.
        let between = SlotMap([[giver], [master(2, 4, 8...16383)]], previous: known)
        #expect(port(between, 7) == 1)
        #expect(SlotMap([[giver], [taker]], previous: between).changes(since: between) == [taker.endpoint: [7]])
        // Without an answer of the giver its claim stays, and with an older one too.
        #expect(port(SlotMap([[taker]], previous: known), 7) == 1)
        let isolated = SlotMap.Master(endpoint: master(1, 3).endpoint, epoch: 3, slots: [], isSelf: true)
        #expect(port(SlotMap([[isolated], [taker]], previous: known), 7) == 1)
    }

    @Test("a slot whose owner says that it has moved belongs to the other one until a description follows")
    func moved() {
        var map = SlotMap([[master(1, 3, 0...16383)]])
        let before = map
        map.move(slot: 7, to: .tcp(host: "h", port: 2))
        #expect(port(map, 7) == 2 && port(map, 8) == 1)
        #expect(map.changes(since: before) == [.tcp(host: "h", port: 2): [7]])
        #expect(port(SlotMap([[master(1, 3, 0...16383)]], previous: map), 7) == 1)
    }
}
