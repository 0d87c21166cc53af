import TestSupport

@testable import Hiredis
@testable import HiredisTestSupport

struct Listener: Identifiable, Hashable, Sendable {
    let id: UInt64
}

typealias ListenerStateMachine = SubscriptionStateMachine<Listener>

/// A model of the server's side of a subscription connection. It executes commands one by one, and its replies and
/// messages arrive in that order. It records violations of the protocol as faults.
struct SubscriptionModelServer {
    enum Reply {
        case event(SubscriptionReply)
        case message(SubscriptionTopic, Int)
    }

    /// The topics for which the user has no permission.
    var forbidden: Set<SubscriptionTopic> = []
    var mayPing = true
    /// The maximum number of topics in a command.
    let maxTopicsPerCommand: Int

    private(set) var subscribed: Set<SubscriptionTopic> = []
    private(set) var faults: [String] = []
    private var commands: [ListenerStateMachine.Command] = []
    private var replies: [Reply] = []

    init(maxTopicsPerCommand: Int) { self.maxTopicsPerCommand = maxTopicsPerCommand }

    var isQuiet: Bool { commands.isEmpty && replies.isEmpty }

    /// Returns whether a topic is subscribed and no command or reply about it is pending.
    func stands(_ topic: SubscriptionTopic) -> Bool {
        subscribed.contains(topic)
            && !commands.contains { $0.isAbout(topic) }
            && !replies.contains {
                if case .event(.confirmed(_, let other)) = $0 { other == topic } else { false }
            }
    }

    /// Breaks the connection: pending commands, replies and all subscriptions are lost.
    mutating func breakConnection() {
        commands = []
        replies = []
        subscribed = []
    }

    mutating func send(_ commands: [ListenerStateMachine.Command]) { self.commands += commands }

    mutating func publish(_ number: Int, on topic: SubscriptionTopic) {
        if subscribed.contains(topic) { replies.append(.message(topic, number)) }
    }

    /// Returns the next reply or message, or nil.
    mutating func nextReply() -> Reply? { replies.isEmpty ? nil : replies.removeFirst() }

    /// Executes the next command.
    ///
    /// - Returns: a description of the command.
    mutating func carryOut() -> String {
        guard !commands.isEmpty else { return "nothing to do" }
        let command = commands.removeFirst()
        carryOut(command)
        return "server: \(command)"
    }

    private mutating func carryOut(_ command: ListenerStateMachine.Command) {
        switch command {
        case .ping:
            replies.append(.event(mayPing ? .pong : .error("NOPERM this user may not PING")))
        case .subscribe(let kind, let names):
            let topics = check(kind, names)
            // An ACL refuses a command with all its topics.
            if topics.contains(where: forbidden.contains) {
                replies.append(.event(.error("NOPERM this user has no permissions to access one of the channels")))
                return
            }
            for topic in topics {
                if !subscribed.insert(topic).inserted { faults.append("\(topic.name) was subscribed twice") }
                replies.append(.event(.confirmed(subscribe: true, topic)))
            }
        case .unsubscribe(let kind, let names):
            for topic in check(kind, names) {
                subscribed.remove(topic)
                replies.append(.event(.confirmed(subscribe: false, topic)))
            }
        }
    }

    private mutating func check(_ kind: SubscriptionTopic.Kind, _ names: [String]) -> [SubscriptionTopic] {
        if names.isEmpty { faults.append("a command without topics") }
        if names.count > maxTopicsPerCommand { faults.append("\(names.count) topics in a command") }
        return names.map { SubscriptionTopic(kind, $0) }
    }
}

extension ListenerStateMachine.Command {
    fileprivate func isAbout(_ topic: SubscriptionTopic) -> Bool {
        switch self {
        case .ping: false
        case .subscribe(let kind, let names), .unsubscribe(let kind, let names):
            kind == topic.kind && names.contains(topic.name)
        }
    }
}
