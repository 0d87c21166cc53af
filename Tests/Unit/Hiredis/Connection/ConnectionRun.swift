import NIOCore
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

/// A run of events against the state machine and the reference, with a record of the results of each command.
struct ConnectionRun: ~Copyable {
    private var machine = ConnectionStateMachine<String>()
    private var reference = ConnectionReference()
    private var script: ArraySlice<ScriptedCommand>
    private var nextID: UInt64 = 0
    private var replies = 0
    private var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
    private var fates: [String: [ConnectionSight]] = [:]

    init(_ script: [ScriptedCommand]) { self.script = script[...] }

    /// Applies an event to both, and returns the difference, if any.
    mutating func apply(_ event: ConnectionEvent) -> String? {
        now = now + .seconds(event == .pass ? 10 : 1)
        let (seen, expected) = outcome(of: event)
        for sight in seen {
            if let name = sight.name { fates[name, default: []].append(sight) }
        }
        if seen != expected { return "\(event): expected \(expected), got \(seen)" }
        if machine.count != reference.count || machine.isIdle != (reference.count == 0) { return "\(event): count" }
        if machine.nextDeadline != reference.nextDeadline { return "\(event): nextDeadline" }
        if machine.silentSince != reference.silentSince { return "\(event): silentSince" }
        if machine.isDrained != reference.isDrained { return "\(event): isDrained" }
        return nil
    }

    private mutating func outcome(of event: ConnectionEvent) -> ([ConnectionSight], [ConnectionSight]) {
        switch event {
        case .enqueue:
            guard let command = script.popFirst() else { return ([], []) }
            let deadline = command.timeout.map { now + .seconds(Int64($0)) } ?? .distantFuture
            let action = machine.enqueue(
                .init(id: nextID, context: command.name, expectedReplies: command.replies, deadline: deadline), now: now
            )
            defer { nextID += 1 }
            return (Self.sights(action), reference.enqueue(command, id: nextID, now: now))
        case .write:
            machine.wroteAll()
            reference.write()
            return ([], [])
        case .heard:
            machine.heard(now: now)
            reference.heard(now: now)
            return ([], [])
        case .reply:
            replies += 1
            machine.heard(now: now)
            reference.heard(now: now)
            let seen = Self.sights(machine.received(.integer(replies)))
            let expected = reference.reply(.integer(replies))
            // The handler closes the connection in this case.
            guard seen == [.unexpected] else { return (seen, expected) }
            return (seen + Self.sights(machine.close(Self.lost)), expected + reference.close())
        case .cancel(let id):
            return (Self.sights(machine.cancel(id).map { [$0] } ?? []), reference.cancel(id))
        case .pass:
            return (Self.sights(machine.expire(now: now)), reference.expire(now: now))
        case .drain:
            return (machine.drain() == .close ? [.closes] : [], reference.drain())
        case .close:
            return (Self.sights(machine.close(Self.lost)), reference.close())
        }
    }

    /// Closes the connection, and returns the first command whose results are wrong, if any.
    mutating func finish() -> String? {
        if let wrong = apply(.close) { return wrong }
        for (name, fate) in fates.sorted(by: { $0.key < $1.key }) {
            switch fate.map(\.kind) {
            case ["refused"], ["delivered"], ["failed"], ["failed", "settled"]: continue
            default: return "\(name) saw \(fate)"
            }
        }
        return fates.count == nextID ? nil : "\(nextID) commands, but only \(fates.count) have a result"
    }

    private static let lost = RedisError(.connectionLost, "gone")

    private static func sights(_ action: ConnectionStateMachine<String>.EnqueueAction) -> [ConnectionSight] {
        switch action {
        case .none: []
        case .fail(let name, let error): [.refused(name, error.code, mayHaveRun: error.mayHaveRun)]
        }
    }

    private static func sights(_ action: ConnectionStateMachine<String>.ReplyAction) -> [ConnectionSight] {
        switch action {
        case .none: []
        case .deliver(let name, let value): [.delivered(name, value)]
        case .settle(let name, let value): [.settled(name, value)]
        case .unexpected: [.unexpected]
        }
    }

    private static func sights(_ failures: [ConnectionStateMachine<String>.Failure]) -> [ConnectionSight] {
        failures.map { .failed($0.context, $0.error.code, mayHaveRun: $0.error.mayHaveRun) }
    }
}

extension ConnectionSight {
    fileprivate var name: String? {
        switch self {
        case .refused(let name, _, _), .delivered(let name, _), .settled(let name, _), .failed(let name, _, _): name
        case .unexpected, .closes: nil
        }
    }

    fileprivate var kind: String {
        switch self {
        case .refused: "refused"
        case .delivered: "delivered"
        case .settled: "settled"
        case .failed: "failed"
        case .unexpected: "unexpected"
        case .closes: "closes"
        }
    }
}
