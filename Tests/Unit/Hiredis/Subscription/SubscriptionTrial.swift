import TestSupport

@testable import Hiredis
@testable import HiredisTestSupport

/// A state machine with many listeners, driven as the hub drives it, against a model server. It tracks the topics of
/// each listener independently, and records every difference as a fault.
final class SubscriptionTrial {
    private struct Account {
        var topics: Set<SubscriptionTopic> = []
        /// The topics of completed joins, which remain when another join is cancelled.
        var kept: Set<SubscriptionTopic> = []
        /// The topics whose subscription was established on this connection or an earlier one.
        var had: Set<SubscriptionTopic> = []
        /// The topics that were established when the connection broke and are not yet established again.
        var missing: Set<SubscriptionTopic> = []
        /// Whether a gap must be reported before the next message.
        var owesGap = false
        /// Whether a gap must be reported when no topic is still missing.
        var owesLastGap = false
    }

    private struct Wait {
        var listener: UInt64
        /// The requested topics, without those that the listener has left since.
        var wanted: Set<SubscriptionTopic>
    }

    private var machine: ListenerStateMachine
    private(set) var server: SubscriptionModelServer
    private var isConnected = false
    private var accounts: [UInt64: Account] = [:]
    private var waits: [UInt64: Wait] = [:]
    private var nextID: UInt64 = 1
    private var nextMessage = 1
    private var ownFaults: [String] = []

    private(set) var completions = 0
    private(set) var refusals = 0
    private(set) var gaps = 0
    private(set) var deliveries = 0

    init(maxTopicsPerCommand: Int) {
        machine = ListenerStateMachine(maxTopicsPerCommand: maxTopicsPerCommand)
        server = SubscriptionModelServer(maxTopicsPerCommand: maxTopicsPerCommand)
    }

    var faults: [String] { server.faults + ownFaults }
    var listeners: [UInt64] { accounts.keys.sorted() }
    var pendingJoins: [UInt64] { waits.keys.sorted() }

    func topics(of listener: UInt64) -> [SubscriptionTopic] { order(accounts[listener]?.topics ?? []) }

    /// Returns the topics for which joins of a listener wait.
    private func awaited(by listener: UInt64) -> Set<SubscriptionTopic> {
        waits.values.filter { $0.listener == listener }.reduce(into: []) { $0.formUnion($1.wanted) }
    }

    private func order(_ topics: Set<SubscriptionTopic>) -> [SubscriptionTopic] {
        topics.sorted { ("\($0.kind)", $0.name) < ("\($1.kind)", $1.name) }
    }

    private func expect(_ holds: Bool, _ message: @autoclosure () -> String) {
        if !holds { ownFaults.append(message()) }
    }

    // MARK: Listeners

    func join(_ listener: UInt64? = nil, to topics: [SubscriptionTopic]) {
        let listener = listener ?? nextID
        let id = nextID + 1
        nextID += 2
        var account = accounts[listener] ?? Account()
        let wanted = Set(topics)
        account.topics.formUnion(wanted)
        account.had.formUnion(wanted.filter { server.stands($0) })
        accounts[listener] = account
        let action = machine.join(Listener(id: listener), to: topics, id: id)
        send(action.commands)
        let wait = Wait(listener: listener, wanted: wanted)
        if action.isComplete { completed(wait) } else { waits[id] = wait }
    }

    func leave(_ listener: UInt64, _ topics: [SubscriptionTopic]? = nil) {
        for id in machine.joins(of: listener, on: topics) { cancelJoin(id) }
        send(machine.leave(listener, topics: topics))
        for id in pendingJoins where waits[id]!.listener == listener { waits[id]!.wanted.subtract(topics ?? []) }
        forget(listener, topics.map { Set($0) })
    }

    func cancelJoin(_ id: UInt64) {
        send(machine.cancelJoin(id))
        guard let wait = waits.removeValue(forKey: id) else { return }
        giveUp(wait)
    }

    /// Leaves the topics of a cancelled join that no other join requested.
    private func giveUp(_ wait: Wait) {
        guard let account = accounts[wait.listener] else { return }
        forget(wait.listener, wait.wanted.subtracting(account.kept).subtracting(awaited(by: wait.listener)))
    }

    private func forget(_ listener: UInt64, _ topics: Set<SubscriptionTopic>?) {
        guard let topics else {
            accounts[listener] = nil
            for (id, wait) in waits where wait.listener == listener {
                ownFaults.append("join \(id) outlives its listener")
            }
            return
        }
        accounts[listener]?.topics.subtract(topics)
        accounts[listener]?.kept.subtract(topics)
        accounts[listener]?.had.subtract(topics)
        accounts[listener]?.missing.subtract(topics)
        // A listener without established topics has missed nothing.
        if accounts[listener]?.had.isEmpty == true { accounts[listener]?.owesLastGap = false }
    }

    // MARK: Connection

    private func send(_ commands: [ListenerStateMachine.Command]) {
        expect(isConnected || commands.isEmpty, "commands without a connection")
        server.send(commands)
    }

    func connect() {
        guard !isConnected else { return }
        isConnected = true
        send(machine.connected())
    }

    func disconnect() {
        guard isConnected else { return }
        isConnected = false
        server.breakConnection()
        machine.disconnected()
        for listener in listeners where !accounts[listener]!.had.isEmpty {
            accounts[listener]!.missing.formUnion(accounts[listener]!.had)
            accounts[listener]!.owesGap = true
            accounts[listener]!.owesLastGap = true
        }
    }

    func ping() { send(machine.ping()) }

    func publish(on topic: SubscriptionTopic) {
        server.publish(nextMessage, on: topic)
        nextMessage += 1
    }

    func changeServer(_ change: (inout SubscriptionModelServer) -> Void) { change(&server) }

    /// Lets the server execute one command, and returns its description.
    func carryOut() -> String { server.carryOut() }

    // MARK: Replies

    /// Handles one reply of the server, and returns its description.
    func receive() -> String {
        let reply = server.nextReply()
        switch reply {
        case .message(let topic, let number)?: receive(number, on: topic)
        case .event(let event)?:
            if case .confirmed(_, let topic) = event, server.stands(topic) { stands(topic) }
            handle(machine.received(event))
        case nil: return "nothing arrives"
        }
        return "\(reply!) arrives"
    }

    private func receive(_ number: Int, on topic: SubscriptionTopic) {
        var reached: [UInt64: Bool] = [:]
        var doubled = false
        machine.message(on: topic) { listener, gapFirst in
            if reached.updateValue(gapFirst, forKey: listener.id) != nil { doubled = true }
        }
        expect(!doubled, "message \(number) was delivered twice")
        let entitled = Set(listeners.filter { accounts[$0]!.topics.contains(topic) })
        expect(
            Set(reached.keys) == entitled,
            "message \(number) went to \(reached.keys.sorted()), not \(entitled.sorted())")
        for (listener, gapFirst) in reached where entitled.contains(listener) {
            deliveries += 1
            if gapFirst { receivedGap(listener) }
            expect(!accounts[listener]!.owesGap, "message \(number) reached \(listener) before the gap")
        }
    }

    private func stands(_ topic: SubscriptionTopic) {
        for listener in listeners where accounts[listener]!.topics.contains(topic) {
            accounts[listener]!.had.insert(topic)
            accounts[listener]!.missing.remove(topic)
        }
    }

    private func handle(_ outcome: SubscriptionOutcome) {
        expect(!outcome.isUnexpected, "a reply is unexpected")
        send(outcome.commands)
        for (listener, error) in outcome.ended {
            expect(error.code == .notPermitted, "ended with \(error)")
            accounts[listener.id] = nil
        }
        for id in outcome.completed {
            guard let wait = waits.removeValue(forKey: id) else {
                ownFaults.append("join \(id) completed without a waiter")
                continue
            }
            completed(wait)
        }
        for (id, error) in outcome.failed {
            refusals += 1
            expect(error.code == .notPermitted, "failed with \(error)")
            guard let wait = waits.removeValue(forKey: id) else {
                ownFaults.append("join \(id) failed without a waiter")
                continue
            }
            giveUp(wait)
        }
        // An outcome is atomic: refused topics are no longer missing.
        let ended = Set(outcome.ended.map(\.0))
        for listener in outcome.gaps where !ended.contains(listener) { receivedGap(listener.id) }
    }

    private func completed(_ wait: Wait) {
        completions += 1
        guard let account = accounts[wait.listener] else {
            ownFaults.append("a join of \(wait.listener) completed after the listener left")
            return
        }
        expect(wait.wanted.isSubset(of: account.topics), "a join completed without its topics")
        let lacking = wait.wanted.subtracting(server.subscribed)
        expect(lacking.isEmpty, "a join completed without \(lacking.map(\.name))")
        accounts[wait.listener]!.had.formUnion(wait.wanted)
        accounts[wait.listener]!.kept.formUnion(wait.wanted)
    }

    private func receivedGap(_ listener: UInt64) {
        gaps += 1
        guard accounts[listener] != nil else {
            ownFaults.append("a gap was reported to \(listener), which has left")
            return
        }
        accounts[listener]!.owesGap = false
        if accounts[listener]!.missing.isEmpty { accounts[listener]!.owesLastGap = false }
    }

    // MARK: Final checks

    /// Processes all pending commands and replies, and compares the states.
    func settle() {
        connect()
        while !server.isQuiet {
            _ = carryOut()
            _ = receive()
        }
        expect(waits.isEmpty, "joins \(pendingJoins) never end")
        let wanted = accounts.values.reduce(into: Set<SubscriptionTopic>()) { $0.formUnion($1.topics) }
        expect(
            server.subscribed == wanted, "\(server.subscribed.map(\.name)) are subscribed, \(wanted.map(\.name)) wanted"
        )
        for listener in listeners {
            expect(accounts[listener]!.missing.isEmpty, "\(listener) lacks \(accounts[listener]!.missing.map(\.name))")
            expect(!accounts[listener]!.owesLastGap, "\(listener) received no gap after all topics were back")
        }
        expect(machine.isNeeded == !wanted.isEmpty, "isNeeded")
    }

    /// Removes all listeners and expects an empty state.
    func disperse() {
        for listener in listeners { leave(listener) }
        settle()
        expect(machine.isEmpty, "the state is not empty")
        expect(machine.allSubscribers.isEmpty, "subscribers remain")
    }
}
