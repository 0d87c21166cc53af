// A reference model of a connection in the simplest form: rules over one array of all accepted commands.
// The tests compare it with ConnectionStateMachine after each event.
import NIOCore
import TestSupport

@testable import Hiredis
@testable import HiredisTestSupport

enum ConnectionEvent: Equatable {
    /// Submits the next command of the script.
    case enqueue
    case write
    case reply
    /// Receives a part of a reply.
    case heard
    case cancel(UInt64)
    /// Advances the time by ten seconds.
    case pass
    case drain
    case close
}

/// An action that the state machine tells its handler to perform.
enum ConnectionSight: Equatable {
    case refused(String, RedisError.Code, mayHaveRun: Bool)
    case delivered(String, RESPValue)
    case settled(String, RESPValue)
    case failed(String, RedisError.Code, mayHaveRun: Bool)
    case unexpected
    case closes
}

struct ScriptedCommand {
    var name: String
    var replies = 1
    /// The timeout in seconds after the command is enqueued.
    var timeout: Int?
}

struct ConnectionReference {
    private struct Command {
        var name: String
        var id: UInt64
        var replies: Int
        var deadline: NIODeadline
        var answers: [RESPValue] = []
        var isWritten = false
        var hasFailed = false

        var isAnswered: Bool { answers.count == replies }
    }

    private enum Life { case open, draining, closed }

    private var life = Life.open
    private var commands: [Command] = []
    private var lastSign = NIODeadline.distantFuture

    /// The indices of commands with outstanding replies.
    private var owed: [Int] { life == .closed ? [] : commands.indices.filter { !commands[$0].isAnswered } }

    var count: Int { owed.count }
    var isDrained: Bool { life == .draining && owed.isEmpty }
    var nextDeadline: NIODeadline? { owed.filter { !commands[$0].hasFailed }.map { commands[$0].deadline }.min() }
    var silentSince: NIODeadline? { owed.first.flatMap { commands[$0].isWritten ? lastSign : nil } }

    mutating func enqueue(_ command: ScriptedCommand, id: UInt64, now: NIODeadline) -> [ConnectionSight] {
        guard life == .open else {
            return [.refused(command.name, life == .draining ? .clientStopped : .connectionLost, mayHaveRun: false)]
        }
        if owed.isEmpty { lastSign = now }
        let deadline = command.timeout.map { now + .seconds(Int64($0)) } ?? .distantFuture
        commands.append(Command(name: command.name, id: id, replies: command.replies, deadline: deadline))
        return []
    }

    mutating func write() {
        for index in owed { commands[index].isWritten = true }
    }

    mutating func heard(now: NIODeadline) { lastSign = now }

    mutating func reply(_ value: RESPValue) -> [ConnectionSight] {
        guard let head = owed.first, commands[head].isWritten else { return [.unexpected] }
        commands[head].answers.append(value)
        let command = commands[head]
        guard command.isAnswered else { return [] }
        let whole = command.replies == 1 ? value : .array(command.answers)
        return [command.hasFailed ? .settled(command.name, whole) : .delivered(command.name, whole)]
    }

    mutating func cancel(_ id: UInt64) -> [ConnectionSight] {
        fail(.cancelled) { $0.id == id }
    }

    mutating func expire(now: NIODeadline) -> [ConnectionSight] {
        fail(.timedOut) { $0.deadline <= now }
    }

    /// Fails commands that may have run, because their bytes are sent even if they are not yet written.
    private mutating func fail(_ code: RedisError.Code, where isHit: (Command) -> Bool) -> [ConnectionSight] {
        owed.compactMap { index in
            guard !commands[index].hasFailed, isHit(commands[index]) else { return nil }
            commands[index].hasFailed = true
            return .failed(commands[index].name, code, mayHaveRun: true)
        }
    }

    mutating func drain() -> [ConnectionSight] {
        guard life == .open else { return [] }
        life = .draining
        return owed.isEmpty ? [.closes] : []
    }

    mutating func close() -> [ConnectionSight] {
        defer { life = .closed }
        return owed.filter { !commands[$0].hasFailed }.map {
            .failed(commands[$0].name, .connectionLost, mayHaveRun: commands[$0].isWritten)
        }
    }
}
