import CoordinationBase
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

@Suite("Listen state machine")
struct ListenStateMachineTests {
    /// Without periodic checks: messages are found by reads and wake-ups alone.
    private static let settings: ListenStateMachine.Settings = {
        var settings = ListenStateMachine.Settings()
        settings.recheckInterval = .seconds(1_000_000)
        settings.pollInterval = .seconds(1_000_000)
        settings.batch = 2
        settings.maxReads = 2
        return settings
    }()

    /// Runs calls, sends, replies, wake-ups, broken connections, losses and cancellations in a random
    /// order.
    private static func run(seed: UInt64, _ treachery: ListenWorld.Treachery? = nil) -> ListenWorld {
        var generator = SplitMix(seed: seed)
        var world = ListenWorld(settings: settings, treachery: treachery)
        for _ in 0..<Int.random(in: 5...60, using: &generator) {
            let mailbox = ["a", "b", "c"].randomElement(using: &generator)!
            switch Int.random(in: 0..<26, using: &generator) {
            case 0..<4:
                let timeout: Duration? = Int.random(in: 0..<4, using: &generator) == 0 ? .seconds(1) : nil
                world.listen(
                    mailbox, device: Bool.random(using: &generator) ? "d" : "e", timeout: timeout,
                    readsOnce: Int.random(in: 0..<8, using: &generator) == 0)
            case 4..<7: world.send(to: mailbox, wakeUpContains: Bool.random(using: &generator))
            case 7..<11: _ = world.executeNext()
            case 11..<15: _ = world.replyNext()
            case 15..<18: _ = world.notifyNext()
            case 18..<20: _ = world.subscribe()
            case 20: world.breakSubscription()
            case 21: if let id = world.unfinished.randomElement(using: &generator) { world.cancel(id) }
            case 22: world.failNext(afterRunning: Bool.random(using: &generator))
            case 23: world.failOver(mailbox, losing: Int.random(in: 1...2, using: &generator))
            case 24: world.takeOver(mailbox, Bool.random(using: &generator) ? "d" : "e")
            default:
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    world.lose(mailbox)
                } else {
                    world.refuseSubscription()
                }
            }
        }
        world.settle()
        return world
    }

    @Test("in every order of events, each call receives its next message and none waits beside a message")
    func randomOrders() {
        for seed in testSeeds(0..<20_000) {
            let world = Self.run(seed: seed)
            #expect(world.stuckCalls.isEmpty, "seed \(seed)")
            #expect(world.faults.isEmpty, "seed \(seed): \(world.faults)")
        }
    }

    @Test("the random orders detect each fault of the world", arguments: ListenWorld.Treachery.allCases)
    func treachery(_ treachery: ListenWorld.Treachery) {
        #expect(
            (0..<20_000).contains { seed in
                let world = Self.run(seed: UInt64(seed), treachery)
                return !world.stuckCalls.isEmpty || !world.faults.isEmpty
            })
    }

    @Test("a call reads only when the subscription is active")
    func subscribesFirst() {
        var world = ListenWorld()
        world.listen("a")
        #expect(world.commandCount == 0)
        _ = world.subscribe()
        #expect(world.commandCount == 0)
        _ = world.notifyNext()
        #expect(world.commandCount == 1)
        // The next call finds it active.
        world.listen("b")
        #expect(world.commandCount == 2)
    }

    @Test("a message in a wake-up costs no command, any other message costs one")
    func wakeUpContainsMessage() {
        for wakeUpContains in [true, false] {
            var world = ListenWorld()
            world.listen("a")
            while world.subscribe() || world.notifyNext() || world.executeNext() || world.replyNext() {}
            let before = world.commandCount
            world.send(to: "a", wakeUpContains: wakeUpContains)
            while world.notifyNext() || world.executeNext() || world.replyNext() {}
            #expect(world.commandCount - before == (wakeUpContains ? 0 : 1))
            #expect(world.finished[1].flatMap { try? $0.get().messages.count } == 1)
            #expect(world.faults.isEmpty)
        }
    }

    @Test("a wake-up that arrives during a read is compared with the reply")
    func wakeUpDuringRead() {
        // The read creates the mailbox, and the wake-up about that arrives before the reply.
        var world = ListenWorld()
        world.listen("a")
        while world.subscribe() || world.notifyNext() {}
        _ = world.executeNext()
        while world.notifyNext() {}
        _ = world.replyNext()
        #expect(world.commandCount == 1)
        #expect(world.machine.waitingCount == 1)
        // The empty reply arrives after the wake-up about a message.
        world.cancel(1)
        world.listen("a")
        _ = world.executeNext()
        world.send(to: "a")
        while world.notifyNext() {}
        _ = world.replyNext()
        #expect(world.commandCount == 2)
        #expect(world.finished[2].flatMap { try? $0.get().messages.count } == 1)
    }

    @Test("a call with a timeout of 0 reads once, without a subscription")
    func readsOnce() {
        var world = ListenWorld()
        world.listen("a", readsOnce: true)
        #expect(world.subscriptionIsSettled)
        _ = world.executeNext()
        _ = world.replyNext()
        #expect(world.unfinished.isEmpty)
    }

    @Test("without wake-ups, calls are checked periodically, many with one command")
    func polling() {
        var settings = ListenStateMachine.Settings()
        settings.usesWakeUps = false
        var world = ListenWorld(settings: settings)
        for number in 0..<1000 { world.listen("\(number)") }
        #expect(world.subscriptionIsSettled)
        world.settle(upTo: .milliseconds(500))
        world.send(to: "7")
        let before = world.commandCount
        world.settle(upTo: .milliseconds(600))
        #expect(world.unfinished.count == 999)
        // Eight batches of 128, and the read of one.
        #expect(world.commandCount - before == 9)
    }

    @Test("a reconnect of 50,000 listeners costs few commands")
    func reconnect() {
        var world = ListenWorld()
        for number in 0..<50_000 { world.listen("\(number)") }
        while world.subscribe() || world.notifyNext() || world.executeNext() || world.replyNext() {}
        let before = world.commandCount
        for _ in 0..<3 {
            world.breakSubscription()
            while world.subscribe() || world.notifyNext() {}
        }
        while world.executeNext() || world.replyNext() {}
        // Three breaks in a row cause two sweeps: the one in progress, and one more.
        #expect(world.commandCount - before <= 2 * 391)
        #expect(world.unfinished.count == 50_000)
    }

    @Test("the subscription lingers after the last call and then ends")
    func linger() {
        var world = ListenWorld()
        world.listen("a", timeout: .seconds(1))
        while world.subscribe() || world.notifyNext() || world.executeNext() || world.replyNext() {}
        world.advance(.seconds(1))
        while world.executeNext() || world.replyNext() {}
        #expect(world.unfinished.isEmpty)
        world.advance(.seconds(9))
        world.listen("a", timeout: .seconds(1))
        #expect(world.subscriptionIsSettled)
        while world.executeNext() || world.replyNext() {}
        world.advance(.seconds(1))
        while world.executeNext() || world.replyNext() {}
        world.advance(.seconds(10))
        world.listen("a")
        #expect(!world.subscriptionIsSettled)
    }

    @Test("a call that cannot read until its timeout throws the reason")
    func unreachable() {
        var world = ListenWorld()
        world.listen("a", timeout: .seconds(1))
        while world.subscribe() || world.notifyNext() {}
        for _ in 0..<100 {
            world.failNext(afterRunning: false)
            _ = world.replyNext()
            world.advance(.milliseconds(20))
        }
        guard case .failure(let error)? = world.finished[1] else {
            Issue.record("the call has not failed")
            return
        }
        #expect(error.code == .connectionLost)
    }

    @Test("a last read without a reply delays the caller by at most a second")
    func hanging() {
        var world = ListenWorld()
        world.listen("a", timeout: .seconds(1))
        while world.subscribe() || world.notifyNext() || world.executeNext() || world.replyNext() {}
        // Nothing is executed from here on.
        world.advance(.seconds(1))
        #expect(world.unfinished == [1])
        world.advance(.milliseconds(999))
        #expect(world.unfinished == [1])
        world.advance(.milliseconds(1))
        guard case .failure(let error)? = world.finished[1] else {
            Issue.record("the call has not failed")
            return
        }
        #expect(error.code == .connectionLost)
        #expect(error.mayHaveRun)
        // The late reply has no effect.
        while world.executeNext() || world.replyNext() {}
        #expect(world.faults.isEmpty)
        #expect(world.machine.isEmpty)
    }

    @Test("many simultaneous calls read in turns of 512")
    func turns() {
        var world = ListenWorld()
        for number in 0..<2000 { world.listen("\(number)") }
        while world.subscribe() || world.notifyNext() {}
        #expect(world.commandCount == 512)
        for number in stride(from: 0, to: 2000, by: 7) { world.cancel(UInt64(number + 1)) }
        while world.executeNext() || world.replyNext() || world.notifyNext() {}
        #expect(world.machine.waitingCount == 2000 - 286)
        #expect(world.machine.waitingCount == world.unfinished.count)
    }

    @Test("of two calls for one device the one with the greater id is newer, whichever arrives first")
    func order() {
        let request = ListenRequest(mailbox: "a", device: "d", maxMessages: 1, maxBytes: 1)
        for ids in [[1, 2], [2, 1]] as [[UInt64]] {
            var machine = ListenStateMachine(settings: .init())
            var ended: [UInt64] = []
            for action in ids.flatMap({ machine.listen(PendingListen(id: $0, ListenProgress(request)), now: .zero) }) {
                if case .finish(let id, .success(let delivery)) = action, delivery.word == "superseded" {
                    ended.append(id)
                }
            }
            #expect(ended == [1])
        }
    }

    @Test("stopping ends every call, and later calls fail")
    func stop() {
        var machine = ListenStateMachine(settings: .init())
        let request = ListenRequest(mailbox: "a", device: "d", maxMessages: 1, maxBytes: 1)
        _ = machine.listen(PendingListen(id: 1, ListenProgress(request)), now: .zero)
        var errors = machine.stop().compactMap { action -> QueueListenError.Code? in
            if case .finish(1, let error) = action { error.code } else { nil }
        }
        for case .finish(2, .failure(let error)) in machine.listen(
            PendingListen(id: 2, ListenProgress(request)), now: .zero)
        {
            errors.append(error.code)
        }
        #expect(errors == [.stopped, .stopped])
    }
}

extension ListenWorld {
    /// Delivers everything in flight and lets this much time pass.
    mutating func settle(upTo duration: Duration) {
        let end = now + duration
        repeat {
            while executeNext() || replyNext() || notifyNext() {}
            advance(.milliseconds(50))
        } while now < end
        while executeNext() || replyNext() || notifyNext() {}
    }
}
