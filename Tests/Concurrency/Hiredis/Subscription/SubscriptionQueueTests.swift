import TestRandom
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The queue of a subscriber", .timeLimit(.minutes(10)))
struct SubscriptionQueueTests {
    private func message(_ number: Int, bytes: Int? = nil) -> RedisMessage {
        var payload = Array("\(number)".utf8)
        if let bytes { payload += [UInt8](repeating: 0x20, count: max(0, bytes - payload.count)) }
        return RedisMessage(channel: "c", topic: "c", payload: payload)
    }

    private func queue(_ messages: Int = 100, bytes: Int = 1 << 20, _ policy: SubscriptionBuffer.Policy = .dropOldest)
        -> SubscriptionQueue
    {
        SubscriptionQueue(SubscriptionBuffer(messages: messages, bytes: bytes, policy: policy))
    }

    /// Ends the queue and returns its events as text: the number of a message, `+5` for a gap of five, `~` for a reconnect.
    private func gathered(_ queue: SubscriptionQueue) async throws -> [String] {
        queue.end(nil)
        var texts: [String] = []
        while let event = try await queue.next() { texts.append(event.brief) }
        return texts
    }

    // MARK: Order and limits

    @Test("the queue returns events in order, then nil")
    func order() async throws {
        let queue = queue()
        for number in 0..<10 { queue.push(message(number)) }
        queue.push(gap: .reconnected)
        queue.push(message(10))
        #expect(try await gathered(queue) == (0..<10).map(String.init) + ["~", "10"])
        #expect(try await queue.next() == nil)
    }

    @Test("dropOldest keeps the newest messages behind a gap with the number of dropped ones")
    func dropOldest() async throws {
        let queue = queue(3, .dropOldest)
        for number in 0..<10 { queue.push(message(number)) }
        #expect(try await queue.next() == .gap(.overflow(missed: 7)))
        queue.push(message(10))
        #expect(try await gathered(queue) == ["+1", "8", "9", "10"])
    }

    @Test("dropOldest reports messages dropped after a gap was read with a second gap")
    func dropOldestAgain() async throws {
        let queue = queue(2, .dropOldest)
        for number in 0..<3 { queue.push(message(number)) }
        #expect(try await queue.next()?.brief == "+1")
        for number in 3..<5 { queue.push(message(number)) }
        #expect(try await gathered(queue) == ["+2", "3", "4"])
    }

    @Test("suspend keeps the oldest messages, followed by a gap with the number of missed ones")
    func suspend() async throws {
        let queue = queue(3, .suspend)
        for number in 0..<10 { queue.push(message(number)) }
        #expect(try await queue.next()?.brief == "0")
        // There is room again, but delivery is suspended until the queue is empty.
        queue.push(message(10))
        for text in ["1", "2", "+8"] { #expect(try await queue.next()?.brief == text) }
        queue.push(message(11))
        #expect(try await gathered(queue) == ["11"])
    }

    @Test("fail ends the sequence with .subscriberTooSlow after the buffered events")
    func fail() async throws {
        let queue = queue(3, .fail)
        for number in 0..<10 { queue.push(message(number)) }
        queue.push(gap: .reconnected)
        for number in 0..<3 { #expect(try await queue.next()?.brief == "\(number)") }
        for _ in 0..<2 {
            let error = await #expect(throws: RedisError.self) { try await queue.next() }
            #expect(error?.code == .subscriberTooSlow)
        }
    }

    @Test("the queue also has a byte limit", arguments: [SubscriptionBuffer.Policy.dropOldest, .suspend])
    func bytes(policy: SubscriptionBuffer.Policy) async throws {
        let queue = queue(100, bytes: 100, policy)
        for number in 0..<5 { queue.push(message(number, bytes: 40)) }
        #expect(try await gathered(queue) == (policy == .dropOldest ? ["+3", "3", "4"] : ["0", "1", "+3"]))
    }

    @Test("a single message is accepted even if it exceeds the byte limit")
    func largeMessage() async throws {
        let dropping = queue(100, bytes: 10, .dropOldest)
        dropping.push(message(1))
        dropping.push(message(2, bytes: 1000))
        #expect(try await gathered(dropping) == ["+1", "2"])
        for policy in [SubscriptionBuffer.Policy.suspend, .fail] {
            let queue = queue(100, bytes: 10, policy)
            queue.push(message(1, bytes: 1000))
            #expect(try await queue.next()?.brief == "1")
        }
    }

    @Test("reading messages frees their bytes")
    func bytesAreGivenBack() async throws {
        let queue = queue(100, bytes: 100, .fail)
        for number in 0..<1000 {
            queue.push(message(2 * number, bytes: 40))
            queue.push(message(2 * number + 1, bytes: 40))
            #expect(try await queue.next()?.brief == "\(2 * number)")
            #expect(try await queue.next()?.brief == "\(2 * number + 1)")
        }
    }

    @Test("consecutive gaps are merged and use no capacity")
    func gaps() async throws {
        let queue = queue(2, .fail)
        for _ in 0..<50 { queue.push(gap: .reconnected) }
        queue.push(message(1))
        for _ in 0..<50 { queue.push(gap: .reconnected) }
        queue.push(message(2))
        #expect(try await gathered(queue) == ["~", "1", "~", "2"])
    }

    @Test("a dropped gap is covered by the gap that counts the dropped messages")
    func droppedGap() async throws {
        let queue = queue(2, .dropOldest)
        queue.push(message(1))
        queue.push(gap: .reconnected)
        for number in 2...4 { queue.push(message(number)) }
        #expect(try await gathered(queue) == ["+2", "3", "4"])
    }

    @Test("a waiting reader receives the next message or gap")
    func waitingReader() async throws {
        let queue = queue(1)
        for text in ["1", "~", "2"] {
            let reader = WaitingReader(queue)
            if text == "~" { queue.push(gap: .reconnected) } else { queue.push(message(Int(text)!)) }
            #expect(try await reader.text == text)
        }
    }

    @Test(
        "in random runs, delivered and missed messages add up to all messages, in order",
        arguments: testSeeds(0..<6))
    func sums(seed: UInt64) async throws {
        var generator = SplitMix(seed: seed)
        for _ in 0..<60 {
            let policy: SubscriptionBuffer.Policy = generator.isHit(1, of: 2) ? .dropOldest : .suspend
            let queue = queue(
                Int.random(in: 1...8, using: &generator), bytes: Int.random(in: 1...60, using: &generator), policy)
            var pushed = 0
            var account = Account()
            for _ in 0..<100 {
                if generator.isHit(3, of: 5) {
                    queue.push(message(pushed, bytes: Int.random(in: 1...30, using: &generator)))
                    pushed += 1
                } else if generator.isHit(1, of: 6) {
                    queue.push(gap: .reconnected)
                } else if account.isBehind(pushed) {
                    account.take(try await queue.next())
                }
            }
            queue.end(nil)
            while let event = try await queue.next() { account.take(event) }
            #expect(account.next == pushed, "seed \(seed)")
            #expect(account.isInOrder, "seed \(seed)")
        }
    }

    // MARK: End

    @Test("after end, buffered events can still be read, and new ones are ignored", arguments: [true, false])
    func end(hasError: Bool) async throws {
        let queue = queue()
        queue.push(message(1))
        queue.end(hasError ? RedisError(.clientStopped, "stopped") : nil)
        queue.end(RedisError(.connectionLost, "later"))
        queue.push(message(2))
        queue.push(gap: .reconnected)
        #expect(try await queue.next()?.brief == "1")
        for _ in 0..<2 {
            if hasError {
                let error = await #expect(throws: RedisError.self) { try await queue.next() }
                #expect(error?.code == .clientStopped)
            } else {
                #expect(try await queue.next() == nil)
            }
        }
    }

    @Test("end resumes a waiting reader", arguments: [true, false])
    func endOfWaiting(hasError: Bool) async throws {
        let queue = queue()
        let reader = WaitingReader(queue)
        queue.end(hasError ? RedisError(.clientStopped, "stopped") : nil)
        if hasError {
            let error = await #expect(throws: RedisError.self) { try await reader.text }
            #expect(error?.code == .clientStopped)
        } else {
            #expect(try await reader.text == nil)
        }
    }

    // MARK: Cancellation

    @Test("a cancelled reader throws .cancelled and takes no event")
    func cancelled() async throws {
        let queue = queue()
        let reader = WaitingReader(queue)
        reader.cancel()
        let error = await #expect(throws: RedisError.self) { try await reader.text }
        #expect(error?.code == .cancelled)
        queue.push(message(1))
        #expect(try await queue.next()?.brief == "1")
        let next = WaitingReader(queue)
        queue.push(message(2))
        #expect(try await next.text == "2")
    }

    @Test("a concurrent second reader is refused, and its cancellation does not affect the first")
    func secondReader() async throws {
        let queue = queue()
        let first = WaitingReader(queue)
        let refused = await #expect(throws: RedisError.self) { try await queue.next() }
        #expect(refused?.code == .invalidArgument)
        // Cancelled before its call: the cancellation must not end the first reader's wait.
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let cancelled = await #expect(throws: RedisError.self) { try await queue.next() }
            #expect(cancelled?.code == .cancelled)
        }.value
        queue.push(message(1))
        #expect(try await first.text == "1")
    }

    @Test("a reader that is cancelled at any time either takes the event or leaves it")
    func cancelRace() async throws {
        let queue = queue()
        for number in 0..<500 {
            let read = Task { try await queue.next()?.brief }
            let push = Task { queue.push(message(number)) }
            read.cancel()
            await push.value
            switch await read.result {
            case .success(let text): #expect(text == "\(number)")
            case .failure(let error):
                #expect((error as? RedisError)?.code == .cancelled)
                #expect(try await queue.next()?.brief == "\(number)")
            }
        }
    }

    // MARK: Threads

    @Test("messages of several threads are neither lost nor repeated, and keep each thread's order")
    func threads() async throws {
        let queue = queue(.max, bytes: .max, .fail)
        let (pushers, each) = (4, 1500)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for pusher in 0..<pushers {
                group.addTask {
                    for number in 0..<each { queue.push(message(pusher * each + number)) }
                }
            }
            var next = [Int](repeating: 0, count: pushers)
            for _ in 0..<(pushers * each) {
                guard case .message(let message)? = try await queue.next(), let value = Int(message.text) else {
                    Issue.record("the event is not a message")
                    return
                }
                #expect(value % each == next[value / each])
                next[value / each] += 1
            }
            try await group.waitForAll()
            #expect(next == [Int](repeating: each, count: pushers))
        }
        #expect(try await gathered(queue) == [])
    }

    @Test(
        "a slow reader receives the exact number of messages that it missed",
        arguments: [SubscriptionBuffer.Policy.dropOldest, .suspend])
    func slowReader(policy: SubscriptionBuffer.Policy) async throws {
        let queue = queue(5, policy)
        let pushed = 20_000
        async let pushing: Void = {
            for number in 0..<pushed { queue.push(message(number)) }
            queue.end(nil)
        }()
        var account = Account()
        while let event = try await queue.next() { account.take(event) }
        await pushing
        #expect(account.next == pushed)
        #expect(account.isInOrder)
    }
}

/// A reader that is already waiting. It runs only on a manual executor, so it stops after each event.
private struct WaitingReader {
    private let executor = ManualExecutor()
    private let read: Task<String?, any Error>

    init(_ queue: SubscriptionQueue) {
        read = Task(executorPreference: executor) { try await queue.next()?.brief }
        executor.run()
    }

    func cancel() { read.cancel() }

    var text: String? {
        get async throws {
            executor.run()
            return try await read.value
        }
    }
}

/// The record of a reader of messages that are numbered from 0.
private struct Account {
    /// The next number that is neither delivered nor missed.
    private(set) var next = 0
    private(set) var isInOrder = true

    mutating func take(_ event: SubscriptionEvent?) {
        switch event {
        case .message(let message)?:
            if message.text.trimmed != "\(next)" { isInOrder = false }
            next += 1
        case .gap(.overflow(let missed))?: next += missed
        case .gap(.reconnected)?, nil: break
        }
    }

    /// Returns whether messages are left that were neither delivered nor reported as missed.
    func isBehind(_ pushed: Int) -> Bool { next < pushed }
}

extension String {
    fileprivate var trimmed: Substring { prefix { $0 != " " } }
}

extension SubscriptionEvent {
    fileprivate var brief: String {
        switch self {
        case .message(let message): String(message.text.trimmed)
        case .gap(.reconnected): "~"
        case .gap(.overflow(let missed)): "+\(missed)"
        }
    }
}
