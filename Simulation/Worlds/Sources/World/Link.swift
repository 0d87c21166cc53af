// The connection of a process for commands, over a network that delays, and that loses what is under way when it breaks.
import NIOCore
import SimulatedRedis

@testable import Hiredis
@testable import RedisDC

/// A connection for commands. Packets arrive in their order.
///
/// When the connection breaks, each request that is under way fails as one that may have run. One that has not arrived may
/// still do so, later than what is sent on the next connection; its reply reaches nobody.
final class Link {
    typealias Completion = (Result<RESPValue, RedisError>) -> Void

    private unowned let world: World
    private unowned let process: SimulatedProcess
    /// The completions of the requests under way, by number.
    private var waiting: [Int: Completion] = [:]
    private var lastNumber = 0
    /// Connections are counted: what belongs to an earlier one is ignored.
    private var generation = 0
    /// The generation of the server that the connection leads to; `nil` while there is none.
    private var server: Int?
    var isConnected: Bool { server != nil }
    /// Whether it leads to the present server.
    var isCurrent: Bool { server == world.servers.generation }
    /// What waits until the process has compared what it knows with the server of a new connection; `nil` when nothing has to.
    private var held: [(send: () -> Void, fail: () -> Void)]?
    /// Whether services still repair on this connection what the server has lost.
    private var isRepaired = true
    /// What arrives of broken connections.
    private var late = LatePackets()
    /// When the last packet in each direction arrives.
    private var lastArrival: Time = 0
    private var lastReply: Time = 0

    init(of process: SimulatedProcess, in world: World) { (self.process, self.world) = (process, world) }

    /// Whether a request is under way.
    var isInUse: Bool { !waiting.isEmpty }

    /// The number of the connection.
    var number: Int { generation }

    /// Whether packets of a connection arrive only if they are very late.
    func isBroken(_ generation: Int) -> Bool { generation != self.generation }

    /// Connects for the first time, or after a break; again until it succeeds.
    func connect() {
        generation += 1
        let generation = generation
        let pause = max(delay(), world.plan.faults.isUnreachable(process, at: world.now) ? 200_000 : 0)
        world.after(pause, .step(process), isNeeded: { generation == self.generation }) { world in
            guard !self.process.isDead, generation == self.generation else { return }
            if world.plan.faults.isUnreachable(self.process, at: world.now) { return self.connect() }
            self.server = world.servers.generation
            self.process.run { $0.connected() }
        }
    }

    /// Breaks the connection, unless it is broken.
    func breakOff() {
        guard server != nil else { return }
        server = nil
        generation += 1
        let failed = waiting.sorted { $0.key < $1.key }
        let unsent = held ?? []
        (waiting, held, isRepaired) = ([:], nil, true)
        process.run { process in
            for (_, completion) in failed {
                completion(.failure(RedisError(.connectionLost, "the connection broke", mayHaveRun: true)))
            }
            for request in unsent { request.fail() }
            process.link.connect()
        }
    }

    /// Lets only requests pass that come first, until ``passOn()``.
    func hold() { held = held ?? [] }

    /// Lets only requests pass that come first, until ``endRepair()`` as well.
    func holdForRepair() {
        hold()
        isRepaired = false
    }

    /// The services have repaired what the server has lost.
    func endRepair() { isRepaired = true }

    /// Lets all requests pass, unless services still repair.
    func passOn() {
        guard isRepaired, let requests = held else { return }
        held = nil
        for request in requests { request.send() }
    }

    /// Sends a script by its hash. A server that does not know it has to load it first, and requests that are sent later
    /// overtake this one.
    ///
    /// - Parameter isFirst: whether it passes while others are held. Its source is sent, which no server needs to know.
    func send(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], timeout: Duration,
        name: String = "script", isFirst: Bool = false, _ completion: @escaping Completion
    ) {
        guard !isFirst, world.plan.faults.unknownScripts > 0 else {
            return send(timeout: timeout, isHeartbeat: script.isHeartbeat, isFirst: isFirst, completion) {
                $0.execute(script, keys, arguments, name: name)
            }
        }
        send(timeout: timeout, isHeartbeat: script.isHeartbeat) { result in
            guard case .failure(let error) = result, error.code == .noScript else {
                return completion(result)
            }
            self.send(timeout: timeout) { result in
                guard case .failure(var error) = result else {
                    return self.send(script, keys, arguments, timeout: timeout, name: name, completion)
                }
                error.mayHaveRun = false
                completion(.failure(error))
            } _: { world in
                world.servers.load(script)
                return .integer(1)
            }
        } _: { world in
            guard world.servers.knows(script) else { return .error(Self.unknownScript) }
            return world.execute(script, keys, arguments, name: name)
        }
    }

    private static let unknownScript = "NOSCRIPT"

    /// - Parameter execute: lets the server carry the request out.
    func send(
        timeout: Duration, isHeartbeat: Bool = false, isFirst: Bool = false, _ completion: @escaping Completion,
        _ execute: @escaping (World) -> RESPValue
    ) {
        if held != nil, !isFirst {
            held!.append(
                (
                    { self.send(timeout: timeout, isHeartbeat: isHeartbeat, completion, execute) },
                    { completion(.failure(RedisError(.connectionLost, "the connection broke"))) }
                ))
            return
        }
        guard let server else {
            return world.after(1000, .step(process, -2)) { _ in
                self.process.run { _ in completion(.failure(RedisError(.cannotConnect, "there is no connection"))) }
            }
        }
        lastNumber += 1
        let (number, generation) = (lastNumber, generation)
        waiting[number] = completion
        let arrival = max(lastArrival, world.now + delay())
        lastArrival = arrival
        let isLate = world.random.isOne(in: 2)
        let lateness = world.random.time(0...5_000_000)
        let lane = Lane(kind: .request, process: process.number, number: generation)
        world.agenda.add(
            at: arrival, lane, content: number, isNeeded: { self.world.servers.generation == server }
        ) { world in
            guard world.servers.generation == server else { return }
            if generation == self.generation {
                let reply = execute(world)
                if world.isOpen, world.plan.faults.losesReply(&world.random) {
                    world.faults += 1
                    world.disturb(until: world.now)
                    return self.breakOff()
                }
                self.answer(number, reply)
            } else if world.exploration != nil {
                _ = execute(world)
            } else if let pause = self.late.pause(of: generation, isLate ? lateness : nil, at: world.now) {
                // The server reads it after what was sent on the next connection.
                world.after(pause) { world in
                    if world.servers.generation == server { _ = execute(world) }
                }
            }
        }
        world.after(timeout.microseconds, .timer(process), isNeeded: { self.waiting[number] != nil }) { _ in
            guard let completion = self.waiting.removeValue(forKey: number) else { return }
            self.process.run { _ in
                completion(.failure(RedisError(.timedOut, "no reply in time", mayHaveRun: true)))
            }
            if isHeartbeat { self.breakOff() }
        }
    }

    private func answer(_ number: Int, _ reply: RESPValue) {
        let generation = generation
        let arrival = max(lastReply, world.now + delay())
        lastReply = arrival
        let lane = Lane(kind: .reply, process: process.number, number: generation)
        world.agenda.add(
            at: arrival, lane, content: world.content(of: reply), isNeeded: { generation == self.generation }
        ) { _ in
            guard generation == self.generation, let completion = self.waiting.removeValue(forKey: number) else {
                return
            }
            let result: Result<RESPValue, RedisError> =
                reply.errorMessage.map { .failure(RedisError(reply: $0)) } ?? .success(reply)
            let faults = self.world.plan.faults
            guard faults.lateReplies > 0, self.world.random.isOne(in: faults.lateReplies) else {
                return self.process.run { _ in completion(result) }
            }
            // The task that passes it on has to wait for a thread, and the connection may end before.
            self.world.after(self.world.random.time(0...50_000), .timer(self.process)) { _ in
                self.process.run { _ in completion(result) }
            }
        }
    }

    /// How long a packet takes.
    private func delay() -> Time {
        world.random.time(50...2000) + world.plan.faults.extraDelay(of: process, at: world.now)
    }
}

/// The packets of broken connections that still arrive: of each the first ones, in their order, as TCP delivers them.
private struct LatePackets {
    /// When the last one of a connection arrives; `nil` if one was lost, and so all that follow.
    private var last: [Int: Time?] = [:]

    /// Returns after what time a packet arrives, or `nil` if it is lost.
    ///
    /// - Parameters:
    ///   - generation: its connection.
    ///   - lateness: of this packet alone, or `nil` if it is lost.
    mutating func pause(of generation: Int, _ lateness: Time?, at now: Time) -> Time? {
        let before = last[generation] ?? .some(0)
        let time = before.flatMap { before in lateness.map { max(before + 1, now + $0) } }
        last[generation] = .some(time)
        return time.map { $0 - now }
    }
}

extension World {
    /// Lets the server run a script, and sends what it has published.
    ///
    /// - Parameter name: what the script does, for a reader of the events.
    func execute(
        _ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument], name: String
    ) -> RESPValue {
        executions += 1
        let before = executions.isMultiple(of: plan.ledgerInterval) ? ledger : nil
        let reply = servers.run(script, keys, arguments)
        if notesScripts { note(Self.words(name, arguments, reply)) }
        if let before {
            for wrong in ledger.wrongs(since: before) { violation(wrong) }
        }
        deliverMessages()
        return reply
    }

    /// A script that the server has run, for a reader of the events.
    private static func words(_ name: String, _ arguments: [RedisArgument], _ reply: RESPValue) -> String {
        let words = arguments.map { argument in
            switch argument {
            case .string(let text): text
            case .integer(let number): "\(number)"
            case .bytes(let bytes): "(\(bytes.count) bytes)"
            case .buffer(let buffer): "(\(buffer.readableBytes) bytes)"
            }
        }
        return "  \(name) \(words.joined(separator: " ")) -> \(reply)"
    }
}

extension Duration {
    var microseconds: Time { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}

extension Duration {
    /// A time that is not before this one.
    var microsecondsRoundedUp: Time { microseconds + (self > .microseconds(microseconds) ? 1 : 0) }
}

extension RESPValue {
    init(_ reply: Reply) {
        switch reply {
        case .status(let text): self = .status(text.text)
        case .error(let text): self = .error(text.text)
        case .integer(let number): self = .integer(Int(number))
        case .bulk(let bytes): self = .bytes(bytes.array)
        case .null, .nullArray: self = .null
        case .array(let elements): self = .array(elements.map { RESPValue($0) })
        }
    }
}
