import TestRandom
import Testing

@testable import QueueListen

@Suite("Listen machine")
struct ListenStateMachineTests {
    /// No slow look: what is found is found by reads and hints alone.
    private static let settings: ListenStateMachine.Settings = {
        var settings = ListenStateMachine.Settings()
        settings.recheckInterval = .seconds(1_000_000)
        settings.pollInterval = .seconds(1_000_000)
        settings.batch = 2
        settings.maxReads = 2
        return settings
    }()

    /// One run in a random order: polls, sends, answers, hints, breaks, losses, cancels.
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
                    isTry: Int.random(in: 0..<8, using: &generator) == 0)
            case 4..<7: world.send(to: mailbox, brings: Bool.random(using: &generator))
            case 7..<11: _ = world.carryOutNext()
            case 11..<15: _ = world.answerNext()
            case 15..<18: _ = world.tellNext()
            case 18..<20: _ = world.subscribe()
            case 20: world.breakSubscription()
            case 21: if let id = world.unfinished.randomElement(using: &generator) { world.cancel(id) }
            case 22: world.failNext(afterRunning: Bool.random(using: &generator))
            case 23: world.failOver(mailbox, losing: Int.random(in: 1...2, using: &generator))
            case 24: world.takeOver(mailbox, Bool.random(using: &generator) ? "d" : "e")
            default:
                if Int.random(in: 0..<4, using: &generator) == 0 { world.lose(mailbox) } else { world.deafen() }
            }
        }
        world.settle()
        return world
    }

    @Test("nobody sleeps past a message or gets one that is not the next, whatever the order of things")
    func oversleep() {
        for seed: UInt64 in 0..<20_000 {
            let world = Self.run(seed: seed)
            #expect(world.oversleepers.isEmpty, "seed \(seed)")
            #expect(world.faults.isEmpty, "seed \(seed): \(world.faults)")
        }
    }

    @Test("that test sees what it is there for", arguments: ListenWorld.Treachery.allCases)
    func treachery(_ treachery: ListenWorld.Treachery) {
        #expect(
            (0..<20_000).contains { seed in
                let world = Self.run(seed: UInt64(seed), treachery)
                return !world.oversleepers.isEmpty || !world.faults.isEmpty
            })
    }

    @Test("a poll reads only when the subscription stands")
    func subscribesFirst() {
        var world = ListenWorld()
        world.listen("a")
        #expect(world.commandCount == 0)
        _ = world.subscribe()
        #expect(world.commandCount == 0)
        _ = world.tellNext()
        #expect(world.commandCount == 1)
        // The next one finds it standing.
        world.listen("b")
        #expect(world.commandCount == 2)
    }

    @Test("what comes with its hint costs no command; what does not, one")
    func brought() {
        for brings in [true, false] {
            var world = ListenWorld()
            world.listen("a")
            while world.subscribe() || world.tellNext() || world.carryOutNext() || world.answerNext() {}
            let before = world.commandCount
            world.send(to: "a", brings: brings)
            while world.tellNext() || world.carryOutNext() || world.answerNext() {}
            #expect(world.commandCount - before == (brings ? 0 : 1))
            #expect(world.finished[1].flatMap { try? $0.get().messages.count } == 1)
            #expect(world.faults.isEmpty)
        }
    }

    @Test("a hint that comes while a poll reads is compared with the answer")
    func comparesAnswers() {
        // It makes the mailbox, and hears of it before the answer.
        var world = ListenWorld()
        world.listen("a")
        while world.subscribe() || world.tellNext() {}
        _ = world.carryOutNext()
        while world.tellNext() {}
        _ = world.answerNext()
        #expect(world.commandCount == 1)
        #expect(world.machine.waitingCount == 1)
        // The answer that there is nothing comes after the hint that there is something now.
        world.cancel(1)
        world.listen("a")
        _ = world.carryOutNext()
        world.send(to: "a")
        while world.tellNext() {}
        _ = world.answerNext()
        #expect(world.commandCount == 2)
        #expect(world.finished[2].flatMap { try? $0.get().messages.count } == 1)
    }

    @Test("a poll with a time of 0 asks once, without a subscription")
    func tries() {
        var world = ListenWorld()
        world.listen("a", isTry: true)
        #expect(world.isLeftAlone)
        _ = world.carryOutNext()
        _ = world.answerNext()
        #expect(world.unfinished.isEmpty)
    }

    @Test("without wake-ups polls are found by looking, many with one command")
    func polling() {
        var settings = ListenStateMachine.Settings()
        settings.usesWakeUps = false
        var world = ListenWorld(settings: settings)
        for number in 0..<1000 { world.listen("\(number)") }
        #expect(world.isLeftAlone)
        world.settle(upTo: .milliseconds(500))
        world.send(to: "7")
        let before = world.commandCount
        world.settle(upTo: .milliseconds(600))
        #expect(world.unfinished.count == 999)
        // Four batches of 256, and the read of one.
        #expect(world.commandCount - before == 5)
    }

    @Test("50,000 listeners cost few commands when the connection comes back")
    func reconnect() {
        var world = ListenWorld()
        for number in 0..<50_000 { world.listen("\(number)") }
        while world.subscribe() || world.tellNext() || world.carryOutNext() || world.answerNext() {}
        let before = world.commandCount
        for _ in 0..<3 {
            world.breakSubscription()
            while world.subscribe() || world.tellNext() {}
        }
        while world.carryOutNext() || world.answerNext() {}
        // Three breaks in a row are two sweeps: the one under way, and one more.
        #expect(world.commandCount - before <= 2 * 196)
        #expect(world.unfinished.count == 50_000)
    }

    @Test("the subscription stays for a while after the last poll, and then goes")
    func linger() {
        var world = ListenWorld()
        world.listen("a", timeout: .seconds(1))
        while world.subscribe() || world.tellNext() || world.carryOutNext() || world.answerNext() {}
        world.advance(.seconds(1))
        while world.carryOutNext() || world.answerNext() {}
        #expect(world.unfinished.isEmpty)
        world.advance(.seconds(9))
        world.listen("a", timeout: .seconds(1))
        #expect(world.isLeftAlone)
        while world.carryOutNext() || world.answerNext() {}
        world.advance(.seconds(1))
        while world.carryOutNext() || world.answerNext() {}
        world.advance(.seconds(10))
        world.listen("a")
        #expect(!world.isLeftAlone)
    }

    @Test("a poll that cannot ask until its time is up says why")
    func unreachable() {
        var world = ListenWorld()
        world.listen("a", timeout: .seconds(1))
        while world.subscribe() || world.tellNext() {}
        for _ in 0..<100 {
            world.failNext(afterRunning: false)
            _ = world.answerNext()
            world.advance(.milliseconds(20))
        }
        guard case .failure(let error)? = world.finished[1] else {
            Issue.record("it has not failed")
            return
        }
        #expect(error.code == .connectionLost)
    }

    @Test("a last look that is not answered does not hold the caller up for long")
    func hanging() {
        var world = ListenWorld()
        world.listen("a", timeout: .seconds(1))
        while world.subscribe() || world.tellNext() || world.carryOutNext() || world.answerNext() {}
        // Nothing is carried out from here on.
        world.advance(.seconds(1))
        #expect(world.unfinished == [1])
        world.advance(.milliseconds(999))
        #expect(world.unfinished == [1])
        world.advance(.milliseconds(1))
        guard case .failure(let error)? = world.finished[1] else {
            Issue.record("it has not failed")
            return
        }
        #expect(error.code == .connectionLost)
        #expect(error.mayHaveRun)
        // The answer that comes after all is for nobody.
        while world.carryOutNext() || world.answerNext() {}
        #expect(world.faults.isEmpty)
        #expect(world.machine.isEmpty)
    }

    @Test("what many want at once is read some at a time, and each has its turn")
    func turns() {
        var world = ListenWorld()
        for number in 0..<2000 { world.listen("\(number)") }
        while world.subscribe() || world.tellNext() {}
        #expect(world.commandCount == 512)
        for number in stride(from: 0, to: 2000, by: 7) { world.cancel(UInt64(number + 1)) }
        while world.carryOutNext() || world.answerNext() || world.tellNext() {}
        #expect(world.machine.waitingCount == 2000 - 286)
        #expect(world.machine.waitingCount == world.unfinished.count)
    }

    @Test("of two polls of one device the one with the greater number is the newer one, whichever comes first")
    func order() {
        let wish = Poll.Wish(mailbox: "a", device: "d", most: 1, maxBytes: 1)
        for ids in [[1, 2], [2, 1]] as [[UInt64]] {
            var machine = ListenStateMachine(settings: .init())
            var ended: [UInt64] = []
            for action in ids.flatMap({ machine.listen(Poll($0, wish), now: .zero) }) {
                if case .finish(let id, .success(let delivery)) = action, delivery.word == "superseded" {
                    ended.append(id)
                }
            }
            #expect(ended == [1])
        }
    }

    @Test("stopping ends every poll")
    func stop() {
        var machine = ListenStateMachine(settings: .init())
        let wish = Poll.Wish(mailbox: "a", device: "d", most: 1, maxBytes: 1)
        _ = machine.listen(Poll(1, wish), now: .zero)
        let ended = machine.stop() + machine.listen(Poll(2, wish), now: .zero)
        let errors = ended.compactMap { action -> QueueListenError.Code? in
            if case .finish(_, .failure(let error)) = action { error.code } else { nil }
        }
        #expect(errors == [.stopped, .stopped])
    }
}

extension ListenWorld {
    /// Lets everything arrive, and so much time pass.
    mutating func settle(upTo duration: Duration) {
        let end = now + duration
        repeat {
            while carryOutNext() || answerNext() || tellNext() {}
            advance(.milliseconds(50))
        } while now < end
        while carryOutNext() || answerNext() || tellNext() {}
    }
}
