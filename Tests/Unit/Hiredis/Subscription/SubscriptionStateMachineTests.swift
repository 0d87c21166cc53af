import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The subscription state machine")
struct SubscriptionStateMachineTests {
    private let alice = Listener(id: 1)
    private let bob = Listener(id: 2)

    private func connected(maxTopicsPerCommand: Int = 1000) -> ListenerStateMachine {
        var machine = ListenerStateMachine(maxTopicsPerCommand: maxTopicsPerCommand)
        _ = machine.connected()
        return machine
    }

    private func confirm(_ machine: inout ListenerStateMachine, _ topics: SubscriptionTopic...)
        -> SubscriptionOutcome
    {
        topics.reduce(into: SubscriptionOutcome()) {
            $0.add(machine.received(.confirmed(subscribe: true, $1)))
        }
    }

    private func heard(_ machine: inout ListenerStateMachine, _ topic: SubscriptionTopic) -> [String] {
        var heard: [String] = []
        machine.message(on: topic) { listener, gapFirst in heard.append("\(listener.id)\(gapFirst ? " gap" : "")") }
        return heard
    }

    // MARK: Clusters

    @Test("sharded channels of several slots are subscribed with a command for each slot")
    func slots() {
        var machine = connected()
        let commands = machine.join(alice, to: [.shard("{a}1"), .shard("b"), .shard("{a}2")], id: 10).commands
        #expect(commands.count == 2)
        #expect(
            commands.contains(.subscribe(.shard, ["{a}1", "{a}2"])) && commands.contains(.subscribe(.shard, ["b"])))
    }

    @Test("an evicted topic leaves its subscribers, and fails the joins that wait for it")
    func evicted() {
        var machine = connected()
        _ = machine.join(alice, to: [.shard("s")], id: 10)
        _ = confirm(&machine, .shard("s"))
        let eviction = machine.evict(.shard("s"))
        #expect(eviction.subscribers.map(\.id) == [1] && eviction.joins.isEmpty && eviction.commands.isEmpty)
        #expect(heard(&machine, .shard("s")).isEmpty)

        #expect(machine.join(bob, to: [.shard("s"), "a"], id: 20).commands.count == 2)
        let pending = machine.evict(.shard("s"), isSubscribed: true)
        #expect(pending.subscribers.isEmpty && pending.joins == [20])
        #expect(pending.commands == [.unsubscribe(.channel, ["a"]), .unsubscribe(.shard, ["s"])])
        #expect(machine.evict(.shard("unknown")).subscribers.isEmpty)
    }

    @Test("a topic that is evicted and joined again is confirmed by its own confirmation only")
    func evictedAndJoined() {
        var machine = connected()
        _ = machine.join(alice, to: [.shard("s")], id: 10)
        _ = machine.evict(.shard("s"), isSubscribed: true)
        #expect(machine.join(bob, to: [.shard("s")], id: 20).commands == [.subscribe(.shard, ["s"])])
        #expect(confirm(&machine, .shard("s")).completed.isEmpty)
        _ = machine.received(.confirmed(subscribe: false, .shard("s")))
        #expect(confirm(&machine, .shard("s")).completed == [20])
    }

    @Test("a refusal that names another server evicts the topic instead of ending its subscribers")
    func movedRefusal() {
        var machine = connected()
        _ = machine.join(alice, to: [.shard("s")], id: 10)
        _ = confirm(&machine, .shard("s"))
        machine.disconnected()
        _ = machine.connected()
        _ = machine.join(bob, to: [.shard("s")], id: 20)
        guard case .refuse(let refusal) = machine.refused("MOVED 1 127.0.0.1:7001") else {
            Issue.record("the refusal was unexpected")
            return
        }
        #expect(refusal.evicted?.0 == .shard("s") && refusal.evicted?.1.map(\.id) == [1])
        #expect(refusal.failed.map(\.0) == [20] && refusal.ended.isEmpty)
    }

    // MARK: Join

    @Test("a topic with several listeners is subscribed once, and its confirmation completes all joins")
    func once() {
        var machine = connected()
        #expect(machine.join(alice, to: ["a"], id: 10).commands == [.subscribe(.channel, ["a"])])
        let second = machine.join(bob, to: ["a"], id: 20)
        #expect(second.commands.isEmpty && !second.isComplete)
        #expect(confirm(&machine, "a").completed == [10, 20])
        let third = machine.join(Listener(id: 3), to: ["a"], id: 30)
        #expect(third.commands.isEmpty && third.isComplete)
    }

    @Test("a join of several topics completes with the last confirmation")
    func several() {
        var machine = connected()
        let topics: [SubscriptionTopic] = ["a", .pattern("p*"), .shard("s"), "b"]
        #expect(
            machine.join(alice, to: topics, id: 10).commands
                == [.subscribe(.channel, ["a", "b"]), .subscribe(.pattern, ["p*"]), .subscribe(.shard, ["s"])])
        #expect(confirm(&machine, "a", "b", .pattern("p*")).completed.isEmpty)
        #expect(confirm(&machine, .shard("s")).completed == [10])
    }

    @Test("topics that are joined without a connection are subscribed after connecting")
    func beforeConnection() {
        var machine = ListenerStateMachine()
        let action = machine.join(alice, to: ["a"], id: 10)
        #expect(action.commands.isEmpty && !action.isComplete)
        #expect(machine.isNeeded)
        #expect(machine.connected() == [.subscribe(.channel, ["a"])])
        #expect(confirm(&machine, "a").completed == [10])
    }

    @Test("a command names at most maxTopicsPerCommand topics")
    func batches() {
        var machine = ListenerStateMachine(maxTopicsPerCommand: 3)
        let topics = (0..<8).map { SubscriptionTopic.channel("c\($0)") }
        _ = machine.join(alice, to: topics, id: 10)
        let commands = machine.connected()
        let names: [[String]] = commands.map { command in
            if case .subscribe(.channel, let names) = command { names } else { [] }
        }
        #expect(names.map(\.count) == [3, 3, 2])
        #expect(Set(names.joined()) == Set(topics.map(\.name)))
        var completed: [UInt64] = []
        for name in names.joined() { completed += confirm(&machine, .channel(name)).completed }
        #expect(completed == [10])
    }

    @Test("names with equal characters but different bytes are different topics")
    func unicode() {
        var machine = connected()
        _ = machine.join(alice, to: ["caf\u{E9}"], id: 10)
        let second = machine.join(bob, to: ["cafe\u{301}"], id: 20)
        #expect(second.commands.count == 1)
    }

    // MARK: Leave

    @Test("the last listener that leaves a topic unsubscribes it and receives no more messages")
    func leave() {
        var machine = connected()
        _ = machine.join(alice, to: ["a"], id: 10)
        _ = machine.join(bob, to: ["a"], id: 20)
        _ = confirm(&machine, "a")
        #expect(heard(&machine, "a") == ["1", "2"])
        #expect(machine.leave(1).isEmpty)
        #expect(heard(&machine, "a") == ["2"])
        #expect(machine.leave(2, topics: ["a"]) == [.unsubscribe(.channel, ["a"])])
        #expect(heard(&machine, "a") == [])
        _ = machine.received(.confirmed(subscribe: false, "a"))
        #expect(!machine.isNeeded)
        _ = machine.leave(2)
        #expect(machine.isEmpty)
    }

    @Test("a join during an unconfirmed UNSUBSCRIBE completes with the following SUBSCRIBE")
    func joinAfterLeave() {
        var machine = connected()
        _ = machine.join(alice, to: ["a"], id: 10)
        _ = confirm(&machine, "a")
        #expect(machine.leave(1) == [.unsubscribe(.channel, ["a"])])
        let action = machine.join(bob, to: ["a"], id: 20)
        #expect(action.commands == [.subscribe(.channel, ["a"])] && !action.isComplete)
        #expect(machine.received(.confirmed(subscribe: false, "a")).completed.isEmpty)
        #expect(confirm(&machine, "a").completed == [20])
    }

    @Test("a cancelled join leaves only the topics that it added")
    func cancelJoin() {
        var machine = connected()
        _ = machine.join(alice, to: ["a"], id: 10)
        _ = confirm(&machine, "a")
        _ = machine.join(alice, to: ["a", "b"], id: 11)
        #expect(machine.cancelJoin(11) == [.unsubscribe(.channel, ["b"])])
        #expect(machine.cancelJoin(11).isEmpty)
        #expect(confirm(&machine, "b").completed.isEmpty)
        #expect(heard(&machine, "a") == ["1"])
    }

    @Test("cancelling one of a listener's two joins to the same topic does not affect the other")
    func overlappingJoins() {
        var machine = connected()
        _ = machine.join(alice, to: ["a"], id: 10)
        _ = machine.join(alice, to: ["a"], id: 11)
        #expect(machine.cancelJoin(10).isEmpty)
        #expect(confirm(&machine, "a").completed == [11])
        #expect(heard(&machine, "a") == ["1"])
        // Cancelling a join keeps the topics of a completed join.
        _ = machine.join(alice, to: ["b", "c"], id: 12)
        #expect(confirm(&machine, "b").completed.isEmpty)
        #expect(machine.join(alice, to: ["b"], id: 13).isComplete)
        #expect(machine.cancelJoin(12) == [.unsubscribe(.channel, ["c"])])
        #expect(heard(&machine, "b") == ["1"])
    }

    // MARK: Broken connections

    @Test("after a reconnect all topics are subscribed, and a listener gets a gap when all its topics are back")
    func gap() {
        var machine = connected()
        _ = machine.join(alice, to: ["a", "b"], id: 10)
        _ = machine.join(bob, to: ["b"], id: 20)
        _ = confirm(&machine, "a", "b")
        machine.disconnected()
        guard case .subscribe(.channel, let names)? = machine.connected().first else {
            Issue.record("no topic is subscribed")
            return
        }
        #expect(names.sorted() == ["a", "b"])
        let first = confirm(&machine, .channel(names[0])).gaps.map(\.id)
        let second = confirm(&machine, .channel(names[1])).gaps.map(\.id)
        #expect(first == (names[0] == "b" ? [2] : []))
        #expect(second.sorted() == (names[1] == "b" ? [1, 2] : [1]))
        #expect(heard(&machine, "b") == ["1", "2"])
    }

    @Test("a message before all topics are back follows a gap, and another gap follows at the end")
    func gapBeforeMessage() {
        var machine = connected(maxTopicsPerCommand: 1)
        _ = machine.join(alice, to: ["a", .pattern("p")], id: 10)
        _ = confirm(&machine, "a", .pattern("p"))
        machine.disconnected()
        _ = machine.connected()
        #expect(confirm(&machine, "a").gaps.isEmpty)
        #expect(heard(&machine, "a") == ["1 gap"])
        #expect(heard(&machine, "a") == ["1"])
        #expect(confirm(&machine, .pattern("p")).gaps.map(\.id) == [1])
    }

    @Test("a listener that leaves its last missing topic still gets the gap")
    func leaveWhatIsMissing() {
        var machine = connected(maxTopicsPerCommand: 1)
        _ = machine.join(alice, to: ["a", .pattern("p")], id: 10)
        _ = confirm(&machine, "a", .pattern("p"))
        machine.disconnected()
        _ = machine.connected()
        #expect(confirm(&machine, "a").gaps.isEmpty)
        _ = machine.leave(1, topics: [.pattern("p")])
        var gaps = confirm(&machine, .pattern("p")).gaps
        gaps += machine.received(.confirmed(subscribe: false, .pattern("p"))).gaps
        #expect(gaps.map(\.id) == [1])
    }

    @Test(
        "a listener that leaves a shared topic while disconnected still gets the gap")
    func leaveSharedWhileDisconnected() {
        var machine = connected()
        _ = machine.join(alice, to: ["a", "b"], id: 10)
        _ = machine.join(bob, to: ["b"], id: 20)
        _ = confirm(&machine, "a", "b")
        machine.disconnected()
        _ = machine.leave(1, topics: ["b"])
        _ = machine.leave(2, topics: ["b"])
        #expect(machine.connected() == [.subscribe(.channel, ["a"])])
        #expect(confirm(&machine, "a").gaps.map(\.id) == [1])
    }

    @Test("a listener without confirmed topics gets no gap after a reconnect")
    func noGap() {
        var machine = connected()
        _ = machine.join(alice, to: ["a"], id: 10)
        machine.disconnected()
        _ = machine.connected()
        let outcome = confirm(&machine, "a")
        #expect(outcome.gaps.isEmpty)
        #expect(outcome.completed == [10])
        #expect(heard(&machine, "a") == ["1"])
    }

    @Test("a partly confirmed join waits for all its topics after a reconnect")
    func joinAcrossBreak() {
        var machine = connected(maxTopicsPerCommand: 1)
        _ = machine.join(alice, to: ["a", .pattern("p")], id: 10)
        #expect(confirm(&machine, "a").completed.isEmpty)
        machine.disconnected()
        // Channels are subscribed before patterns.
        #expect(machine.connected() == [.subscribe(.channel, ["a"]), .subscribe(.pattern, ["p"])])
        #expect(confirm(&machine, "a").completed.isEmpty)
        #expect(confirm(&machine, .pattern("p")).completed == [10])

        var other = connected(maxTopicsPerCommand: 1)
        _ = other.join(alice, to: ["a"], id: 20)
        _ = confirm(&other, "a")
        _ = other.join(alice, to: ["a", .pattern("p")], id: 21)
        other.disconnected()
        _ = other.connected()
        #expect(confirm(&other, "a").completed.isEmpty)
        #expect(confirm(&other, .pattern("p")).completed == [21])
    }

    // MARK: Refused topics

    private let noPerm = SubscriptionReply.error("NOPERM this user has no permissions to access the channel")

    @Test("a refused command is retried topic by topic, and only joins of the forbidden topic fail")
    func refused() throws {
        var machine = connected()
        _ = machine.join(alice, to: ["a", "secret"], id: 10)
        var outcome = machine.received(noPerm)
        #expect(outcome.commands == [.subscribe(.channel, ["a"]), .subscribe(.channel, ["secret"])])
        _ = machine.join(bob, to: ["a"], id: 20)
        #expect(confirm(&machine, "a").completed == [20])
        outcome = machine.received(noPerm)
        #expect(outcome.failed.map(\.0) == [10])
        #expect(outcome.failed.first?.1.code == .notPermitted)
        // The failed join of Alice has left "a"; Bob is still subscribed.
        #expect(outcome.commands.isEmpty)
        #expect(heard(&machine, "a") == ["2"])
        #expect(heard(&machine, "secret") == [])
    }

    @Test("a topic that was left while its command was refused is not subscribed again")
    func leftWhileRefused() {
        var machine = connected()
        _ = machine.join(alice, to: ["a", "secret"], id: 10)
        _ = machine.join(bob, to: ["a"], id: 20)
        #expect(machine.cancelJoin(10) == [.unsubscribe(.channel, ["secret"])])
        #expect(machine.leave(2) == [.unsubscribe(.channel, ["a"])])
        #expect(machine.received(noPerm).commands.isEmpty)
        _ = machine.received(.confirmed(subscribe: false, "secret"))
        _ = machine.received(.confirmed(subscribe: false, "a"))
        #expect(!machine.isNeeded)
    }

    @Test("a listener whose topic is refused after a reconnect ends, and its pending join fails once")
    func revoked() {
        var machine = connected()
        _ = machine.join(alice, to: ["a"], id: 10)
        _ = confirm(&machine, "a")
        machine.disconnected()
        _ = machine.join(alice, to: ["a", .pattern("p"), .pattern("q")], id: 11)
        _ = machine.connected()
        let outcome = machine.received(noPerm)
        #expect(outcome.failed.map(\.0) == [11])
        #expect(outcome.ended.map(\.0) == [alice])
        #expect(outcome.ended.first?.1.code == .notPermitted)
        #expect(machine.allSubscribers.isEmpty)
    }

    // MARK: PING and unexpected replies

    @Test("a PING is sent only on a connection, and its reply or error is matched in order")
    func ping() {
        var machine = ListenerStateMachine()
        #expect(machine.ping().isEmpty)
        _ = machine.connected()
        #expect(machine.ping() == [.ping])
        _ = machine.join(alice, to: ["a"], id: 10)
        #expect(machine.ping() == [.ping])
        #expect(!machine.received(.pong).isUnexpected)
        #expect(machine.received(.confirmed(subscribe: true, "a")).completed == [10])
        let refused = machine.received(noPerm)
        #expect(!refused.isUnexpected && refused.failed.isEmpty)
    }

    @Test(
        "a reply that matches no command is unexpected",
        arguments: [
            SubscriptionReply.pong, .confirmed(subscribe: true, "b"), .confirmed(subscribe: false, "a"),
            .confirmed(subscribe: true, .pattern("a")),
        ])
    func unexpected(event: SubscriptionReply) {
        var machine = connected()
        #expect(machine.received(event).isUnexpected)
        #expect(machine.received(noPerm).isUnexpected)
        _ = machine.join(alice, to: ["a"], id: 10)
        #expect(machine.received(event).isUnexpected)
    }

    @Test("a message on a topic without listeners is not delivered")
    func stray() {
        var machine = connected()
        #expect(heard(&machine, "a") == [])
    }
}
