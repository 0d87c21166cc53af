// The Redis client of a process's post office: what the library calls, over the simulated connection of the process.
import SimulatedRedis

@testable import CoordinationBase
@testable import Hiredis

/// A client whose commands travel over the process's ``Link``.
///
/// `@unchecked`: a world is used by one thread.
final class SimulatedClient: EventLoopRedis, @unchecked Sendable {
    typealias Answer = Result<RESPValue, RedisError>

    private weak var process: SimulatedProcess?
    private let executor: WorldExecutor
    /// Whether the world has ended: all calls fail.
    private(set) var isOver = false
    private var lastNumber: UInt64 = 0
    /// What waits for a reply or for a time, by number.
    private var waiting: [UInt64: UnsafeContinuation<Answer, Never>] = [:]
    /// What is called for each new connection, by number.
    private var first: [UInt64: @Sendable (NewConnection) async -> Void] = [:]
    /// The last comparison on a new connection that has ended: the generation of the server, and when it began and ended.
    private(set) var comparison = (generation: 0, began: Time(0), ended: Time(0))
    /// What is posted on new connections, by number.
    private var posts: [UInt64: NewConnection.Completion] = [:]
    /// How many bodies of those who come first have not returned, by the number of the connection.
    private var bodiesLeft: [Int: Int] = [:]
    let channels: SimulatedChannels

    init(of process: SimulatedProcess, _ executor: WorldExecutor) {
        (self.process, self.executor) = (process, executor)
        channels = SimulatedChannels(of: process)
    }

    /// Lets all later calls fail.
    func close() { isOver = true }

    /// Ends all calls.
    func end() {
        let numbers = waiting.keys.sorted()
        for number in numbers { finish(number, .failure(Self.stopped)) }
        let posts = posts.sorted { $0.key < $1.key }
        self.posts = [:]
        for (_, completion) in posts { completion(.failure(Self.stopped)) }
    }

    private static var stopped: RedisError { RedisError(.clientStopped, "the world has ended") }

    // MARK: Waiting

    /// Waits for an answer, which `begin` brings about under a number.
    private func wait(_ begin: (SimulatedProcess, UInt64) -> Void) async throws(RedisError) -> RESPValue {
        lastNumber += 1
        let number = lastNumber
        let answer: Answer = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Answer, Never>) in
                guard let process, !isOver else { return continuation.resume(returning: .failure(Self.stopped)) }
                waiting[number] = continuation
                if Task.isCancelled { return cancel(number) }
                begin(process, number)
            }
        } onCancel: {
            cancel(number)
        }
        return try answer.get()
    }

    private func cancel(_ number: UInt64) {
        finish(number, .failure(RedisError(.cancelled, "the task was cancelled", mayHaveRun: true)))
    }

    func finish(_ number: UInt64, _ answer: Answer) { waiting.removeValue(forKey: number)?.resume(returning: answer) }

    /// Waits in the process's time.
    func sleep(_ time: Duration) async throws {
        _ = try await wait { process, number in
            process.world.after(
                max(0, time.microseconds), .timer(process), isNeeded: { self.waiting[number] != nil && !process.isDead }
            ) { _ in
                process.run { _ in self.finish(number, .success(.null)) }
            }
        }
    }

    /// The time of the process.
    var clock: MonotonicClock {
        MonotonicClock(
            // Sleeps fail at once in the end: nothing may wait for a time that does not come.
            now: { [self] in isOver ? .seconds(1 << 40) : process?.now ?? .zero },
            sleep: { [self] time in try await sleep(time) })
    }

    // MARK: EventLoopRedis

    var serialExecutor: any SerialExecutor { executor }

    var isCurrent: Bool { true }

    func execute(_ body: @escaping @Sendable () -> Void) { body() }

    var connectionFailure: RedisError? { nil }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Answer) -> Void
    ) {
        guard let process, !isOver else { return completion(.failure(Self.stopped)) }
        let arguments = process.world.mail?.withStablePolls(script, arguments, of: process) ?? arguments
        process.link.send(timeout: timeout ?? .seconds(10), completion) { [weak process] world in
            world.executeMail(script, keys, arguments, of: process)
        }
    }

    func sendFirst(
        for key: String?, _ body: @escaping @Sendable (NewConnection) async -> Void
    ) -> (@Sendable () -> Void)? {
        lastNumber += 1
        let number = lastNumber
        first[number] = body
        return { self.first[number] = nil }
    }

    /// The connection for commands is new: those who come first have it before all others.
    func connected() {
        guard let process else { return }
        process.mail?.isTroubled()
        let (link, began) = (process.link, process.world.now)
        let number = link.number
        let connection = newConnection(number)
        let bodies = first.keys.sorted().map { first[$0]! }
        bodiesLeft[number] = bodies.count
        if !bodies.isEmpty { link.holdForRepair() }
        for body in bodies {
            executor.begin { [self] in
                await body(connection)
                hasCompared(number, since: began)
            }
        }
    }

    /// A body has returned.
    private func hasCompared(_ number: Int, since began: Time) {
        bodiesLeft[number]? -= 1
        guard bodiesLeft[number] == 0, let process, !process.link.isBroken(number) else { return }
        bodiesLeft = [:]
        comparison = (process.world.servers.generation, began, process.world.now)
        process.link.endRepair()
        process.passOnConnection()
    }

    /// A little less than the `repairTime` of the configurations, in microseconds: a clock of a process starts with it.
    private static let remembered: Time = 29_000_000

    /// Whether what was confirmed at a time is repeated if the present server has lost it, and was so before another time:
    /// the process has compared what it knows with this server. What is too old when the comparison begins is forgotten.
    func hasRepaired(_ confirmed: Time, before time: Time) -> Bool {
        confirmed < time && comparison.generation == process?.world.servers.generation && comparison.ended < time
            && (confirmed > comparison.began || comparison.began - confirmed < Self.remembered)
    }

    /// The connection of the process, which is new.
    private func newConnection(_ number: Int) -> NewConnection {
        NewConnection(
            hasEnded: { [self] in process?.link.isBroken(number) ?? true },
            post: { [self] script, keys, arguments, timeout, completion in
                guard let process, !isOver, !process.link.isBroken(number) else {
                    return completion(.failure(RedisError(.connectionLost, "the connection has ended")))
                }
                lastNumber += 1
                let post = lastNumber
                posts[post] = completion
                process.link.send(timeout: timeout, isFirst: true) {
                    self.posts.removeValue(forKey: post)?($0)
                } _: { [weak process] world in
                    world.executeMail(script, keys, arguments, of: process)
                }
            })
    }

    func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) {
        try await subscription.drain(isolation: isolation, into: sink)
    }

    // MARK: Redis

    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue {
        try await wait { process, number in
            process.link.send(timeout: timeout ?? .seconds(10)) {
                self.finish(number, $0)
            } _: { world in
                world.executeMail(command)
            }
        }
    }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await wait { process, number in
            post(script, keys: keys, arguments: arguments, timeout: timeout) { self.finish(number, $0) }
        }
    }

    func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription {
        let queue = SubscriptionQueue(buffer)
        _ = try await wait { process, number in
            channels.subscribe(queue, topics) { self.finish(number, $0) }
        }
        return Subscription(queue: queue, source: channels)
    }

    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        var replies: [RESPValue] = []
        for command in commands { replies.append(try await send(command, timeout: timeout, settle: nil)) }
        return replies
    }

    // What mailboxes do not use in a world.

    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value { throw Self.unsupported }

    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        throw Self.unsupported
    }

    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? { throw Self.unsupported }

    func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        throw Self.unsupported
    }

    private static var unsupported: RedisError { RedisError(.serverError, "a world does not have this") }
}
