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
            now: { [self] in process?.now ?? .zero },
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

    /// The connection for commands is new.
    func connected() {
        process?.mail?.isTroubled()
        for number in first.keys.sorted() {
            let body = first[number]!
            executor.begin { await body(.closed) }
        }
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
