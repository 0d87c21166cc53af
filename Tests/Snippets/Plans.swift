// Plans for the examples that do not end by themselves when they run alone.
import GameServices
import Hiredis
import QueueListen
import RedisDC

struct Plan: Sendable {
    /// For an example that goes on until it is cancelled: the call of Surroundings.swift that shows that it works.
    var goesOnUntil: String?
    /// The number of copies that run at the same time, like the processes of a program.
    var copies = 1
    /// A call that the example must have made when it has ended.
    var calls: String?
    /// The work of another process meanwhile.
    var beside: @Sendable (World) async throws -> Void = { _ in }
}

/// A message in the mailbox, which the reader of an example receives.
@Sendable private func sendHello(_ world: World) async throws { try await world.office.send("hello", to: "alice") }

/// A move and a line of chat for a receiver.
@Sendable private func sendMoveAndChat(_ world: World) async throws {
    try await world.office.send(Message(text: "hello", type: "chat"), to: "alice")
    try await world.office.send(Message(json: Move(from: "e2", to: "e4"), type: "move"), to: "alice")
}

/// Publishes until the subscriber of an example has received something.
@Sendable private func publishNews(_ world: World) async throws {
    while try await world.redis.publish("extra", to: "news") == 0 { try await Task.sleep(for: .milliseconds(5)) }
}

/// A player, and then a session that ends without a disconnect, because the server does not answer for its time to live.
@Sendable private func loseSession(_ world: World) async throws {
    let phone = try await world.lobby.connect(user: "alice", client: "phone")
    try await world.lobby.put("player:alice", "ready", owner: phone)
    try await world.server.pause()
    try await Task.sleep(for: .seconds(3))
    try await world.server.resume()
}

@Sendable private func comeAndGo(_ world: World) async throws {
    let phone = try await world.lobby.connect(user: "alice", client: "phone")
    try await world.waitFor("table 0")
    try await world.lobby.put("player:alice", "ready", owner: phone)
    try await world.waitFor("show")
    try await world.lobby.disconnect(phone)
}

@Sendable private func noteSubscription(_ world: World) async throws {
    try await publishNews(world)
    note("subscribed")
}

@Sendable private func noteDevice(_ world: World) async throws {
    while try await world.mailbox.inspect()?.devices.isEmpty ?? true { try await Task.sleep(for: .milliseconds(5)) }
    note("phone is known")
}

/// Fills the stock for the task that waits for it.
@Sendable private func deliver(_ world: World) async throws {
    let mutex = try world.coordinator.mutex("stock")
    let arrived = try mutex.condition("arrived")
    try await world.waitForWaiter(of: arrived.name)
    try await mutex.withLock { _ in
        await world.stock.add("")
        try await arrived.notify()
    }
}

@Sendable private func openGate(_ world: World) async throws {
    try await world.waitForWaiter(of: "start")
    try await world.coordinator.turnstile("start").unlock()
}

/// Leads until the example has shown it.
@Sendable private func lead(_ world: World) async throws {
    try await world.election.withLeadership { _ in try await world.waitFor("show Optional") }
}

/// The other process of the rendezvous.
@Sendable private func arriveAsB(_ world: World) async throws {
    try await world.waitFor("print first step")
    try await ClassicSemaphore("b-arrived", redis: world.redis).signal()
}

@Sendable private func sendPicture(_ world: World) async throws {
    try await world.office.send("cat.jpg", to: "pictures")
}

/// Waits until the payment is booked.
@Sendable private func sendPayment(_ world: World) async throws {
    try await world.office.send("5", to: "payments")
    while try await world.redis.send("GET", "balance").string != "5" { try await Task.sleep(for: .milliseconds(5)) }
    note("paid")
}

@Sendable private func askSum(_ world: World) async throws {
    note("answered \(try await world.office.ask(Message(text: "1 2 3"), to: "sums").text)")
}

/// Works until the example has its answer.
@Sendable private func answerSum(_ world: World) async throws {
    let work = Task {
        try await world.office.mailbox("sums").work { job in try await job.answer(with: Message(text: "6")) }
    }
    defer { work.cancel() }
    try await world.waitFor("print 6")
}

/// By the place of the example. An example without a plan must end by itself, without an error.
let plans: [String: Plan] = [
    "README.md 1": .init(calls: "print in the lobby: [\"player:alice\"]"),
    "docs/chat-room.md 1": .init(calls: "print here: [\"member:alice\"]"),
    "docs/chat-room.md 2": .init(goesOnUntil: "show hello"),
    "docs/limit-a-rate.md 2": .init(calls: "play"),
    "docs/quick-start.md 1": .init(calls: "print cooking with fence"),
    "docs/quick-start.md 2": .init(goesOnUntil: "print 1 your turn"),
    "docs/run-a-job-once.md 1": .init(calls: "print running the job, with fence"),
    "docs/run-a-job-once.md 2": .init(calls: "storage.write"),
    "docs/run-a-job-once.md 3": .init(goesOnUntil: "schedule"),
    "docs/run-a-job-once.md 4": .init(calls: "perform"),
    "docs/services.md 2": .init(goesOnUntil: "putObjects phone", beside: loseSession),
    "docs/services.md 3": .init(goesOnUntil: "remove player:alice", beside: comeAndGo),
    "docs/services.md 4": .init(calls: "print 1"),
    "Sources/GameServices/Presence/Presence.swift 1": .init(goesOnUntil: "show"),
    "Sources/Hiredis/Client/Redis.swift 1": .init(goesOnUntil: "subscribed", beside: noteSubscription),
    "Sources/Hiredis/Client/RedisClient.swift 1": .init(calls: "print hello"),
    "Sources/Hiredis/Client/RedisClient.swift 2": .init(goesOnUntil: "server runs"),
    "Sources/Hiredis/Subscription/Subscription.swift 1": .init(goesOnUntil: "show extra", beside: publishNews),
    "Sources/QueueListen/Delivery.swift 1": .init(calls: "handle hello", beside: sendHello),
    "Sources/QueueListen/DeviceReader.swift 1": .init(goesOnUntil: "phone is known", beside: noteDevice),
    "Sources/QueueListen/Mailbox.swift 1": .init(goesOnUntil: "handle hello", beside: sendHello),
    "Sources/QueueListen/MailboxMessages.swift 1": .init(goesOnUntil: "handle hello", beside: sendHello),
    "Sources/QueueListen/PostOffice.swift 1": .init(goesOnUntil: "print hello"),
    "Sources/QueueListen/QueueListen.docc/MailboxesInAnApp.md 2": .init(
        goesOnUntil: "game.play", beside: sendMoveAndChat),
    "Sources/QueueListen/QueueListen.docc/MailboxesInAnApp.md 3": .init(goesOnUntil: "handle hello", beside: sendHello),
    "Sources/QueueListen/QueueListen.docc/QueueListen.md 1": .init(goesOnUntil: "show your turn"),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 1": .init(goesOnUntil: "resize"),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 2": .init(goesOnUntil: "resize", beside: sendPicture),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 6": .init(goesOnUntil: "resize", beside: sendPicture),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 7": .init(goesOnUntil: "answered 6", beside: askSum),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 8": .init(calls: "print 6", beside: answerSum),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 9": .init(goesOnUntil: "paid", beside: sendPayment),
    "Sources/QueueListen/Ask/PostOffice+Ask.swift 1": .init(calls: "print 6", beside: answerSum),
    "Sources/QueueListen/QueueListen.docc/RunningJobs.md 10": .init(goesOnUntil: "storage.write", beside: sendPicture),
    "Sources/QueueListen/Work/JobScript.swift 2": .init(goesOnUntil: "paid", beside: sendPayment),
    "Sources/QueueListen/Work/WorkerService.swift 1": .init(goesOnUntil: "resize", beside: sendPicture),
    "Sources/QueueListen/Work/Mailbox+Work.swift 1": .init(goesOnUntil: "resize", beside: sendPicture),
    "Sources/QueueListen/Receiver/Receiver.swift 1": .init(goesOnUntil: "game.play", beside: sendMoveAndChat),
    "Sources/RedisDC/Lease.swift 1": .init(calls: "storage.write"),
    "Sources/RedisDC/Primitives/Barrier.swift 1": .init(copies: 4, calls: "publishFrame"),
    "Sources/RedisDC/Primitives/BoundedBuffer.swift 1": .init(calls: "perform"),
    "Sources/RedisDC/Primitives/Condition.swift 1": .init(calls: "stock.take", beside: deliver),
    "Sources/RedisDC/Primitives/DistributedMutex.swift 1": .init(calls: "storage.write"),
    "Sources/RedisDC/Primitives/DoubleBarrier.swift 1": .init(copies: 3, calls: "importMyPart"),
    "Sources/RedisDC/Primitives/Election.swift 1": .init(goesOnUntil: "schedule"),
    "Sources/RedisDC/Primitives/Election.swift 2": .init(goesOnUntil: "show Optional", beside: lead),
    "Sources/RedisDC/Primitives/Exchanger.swift 1": .init(copies: 2),
    "Sources/RedisDC/Primitives/Latch.swift 1": .init(copies: 3),
    "Sources/RedisDC/Primitives/LightSwitch.swift 1": .init(calls: "clean"),
    "Sources/RedisDC/Primitives/MultiLock.swift 1": .init(calls: "transfer"),
    "Sources/RedisDC/Primitives/Phaser.swift 1": .init(copies: 3, calls: "perform"),
    "Sources/RedisDC/Primitives/ReadWriteLock.swift 1": .init(calls: "catalogue.update"),
    "Sources/RedisDC/Primitives/Semaphore.swift 1": .init(calls: "play"),
    "Sources/RedisDC/Primitives/Turnstile.swift 1": .init(beside: openGate),
    "Sources/RedisDC/RedisDC.docc/GettingStarted.md 1": .init(calls: "print cooking with fence"),
    "Sources/RedisDC/RedisDC.docc/GettingStarted.md 2": .init(calls: "cook"),
    "Sources/RedisDC/RedisDC.docc/GettingStarted.md 3": .init(goesOnUntil: "server runs"),
    "Sources/RedisDC/RedisDC.docc/RedisDC.md 1": .init(calls: "cook"),
    "Sources/RedisDC/RedisDC.docc/TextbookToProduction.md 1": .init(calls: "print second step", beside: arriveAsB),
    "Sources/RedisDC/RedisDC.docc/TextbookToProduction.md 2": .init(calls: "play"),
    "Sources/RedisDC/RedisDC.docc/TextbookToProduction.md 4": .init(calls: "storage.write"),
]
