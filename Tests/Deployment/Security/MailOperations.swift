// Every public operation of a post office and its mailboxes, by one user of the server.
import Hiredis
import QueueListen
import TestSupport
import Testing

/// Runs every public operation of QueueListen in one namespace of four partitions.
struct MailOperations {
    let redis: RedisClient
    let namespace: String
    /// Another user, who breaks connections and deletes keys.
    let admin: RedisClient

    /// The recipients, which are in different partitions.
    private let names = ["alice", "bob", "carol"]

    static func configuration() -> PostOfficeConfiguration {
        var configuration = PostOfficeConfiguration()
        configuration.partitions = 4
        configuration.takeOverAfter = .seconds(1)
        configuration.callTimeout = .seconds(20)
        return configuration
    }

    func run() async throws {
        var configuration = Self.configuration()
        // The time for which a send waits for a replica that does not exist.
        configuration.callTimeout = .seconds(6)
        try await withPostOffice(redis: redis, namespace: namespace, configuration: configuration) {
            try await replicatedSends($0)
        }
        try await withPostOffice(redis: redis, namespace: namespace, configuration: Self.configuration()) { office in
            try await fsyncedSends(office)
            try await sends(office)
            try await listens(office)
            try await limits(office)
            try await losses(office)
            try await receivers(office)
            try await workers(office)
            let mailbox = try office.mailbox("alice")
            #expect(try await mailbox.peek(limit: 1).isEmpty == false)
            #expect(try await mailbox.count > 0)
            #expect(try await mailbox.devices().isEmpty == false)
            #expect(try await mailbox.inspect() != nil)
            #expect(try await mailbox.delete() != nil)
        }
    }

    private func sends(_ office: PostOffice) async throws {
        try await office.send("to one", to: "alice")
        try await office.send("to many", to: "alice", "bob", "carol")
        let message = Message(text: "with all", type: "t", headers: ["a": "b"], ttl: .seconds(60), collapseKey: "k")
        for _ in 0..<2 { #expect(try await office.send([message], to: names, id: "an id").id == "an id") }
        try await office.send(message, to: "alice", id: "of the caller, to one")
        try await office.send(message, to: "alice")
        try await office.send(["alice": [message], "bob": [Message(text: "b"), Message(text: "c")]])
        for delay in [Duration.zero, .seconds(3600)] {
            try await office.send("later", to: "alice", "bob", after: delay, id: "later \(delay)")
        }
        #expect(try await office.cancelScheduledSend("later \(Duration.seconds(3600))"))
        try await until("the other one is sent") { try await office.scheduledSends().isEmpty }
        for recipients in [["alice"], ["bob", "carol"]] {
            let messages = [Message(text: "again")]
            try await office.send(messages, to: recipients, recurring: .every(.seconds(1)), id: "recurring")
            try await until("it is sent") {
                try await office.mailbox(recipients[0]).peek(limit: 100).contains { $0.text == "again" }
            }
        }
        #expect(try await office.cancelScheduledSend("recurring"))
        // The post office forgets sends across partitions, some time after they are finished.
        try await until("finished sends are forgotten") {
            try await admin.send("INFO", "commandstats").string?.contains("cmdstat_hexists:calls") == true
        }
        let other = try office.mailbox("unused")
        #expect(try await other.inspect() == nil)
        #expect(try await other.delete() == nil)
    }

    private func workers(_ office: PostOffice) async throws {
        let mailbox = try office.mailbox("jobs")
        var configuration = WorkConfiguration()
        configuration.attempts = 2
        configuration.maxFailed = 1
        configuration.pause = .milliseconds(1)...(.milliseconds(2))
        for text in ["one", "two", "three"] {
            var message = Message(text: text)
            message.orderKey = "key"
            try await office.send(message, to: "jobs")
        }
        let work = Task { [configuration] in
            try await mailbox.work(configuration) { job in if job.message.text != "three" { throw NotDone() } }
        }
        try await until("two have failed, of which one is kept") {
            try await mailbox.jobs(.failed).map(\.message.text) == ["two"]
        }
        try await until("all are done") { try await mailbox.workStatus().running == 0 }
        try await mailbox.pauseWork()
        let failed = try await mailbox.jobs(.failed).map(\.id)
        #expect(try await mailbox.retryJobs(failed) == 1)
        #expect(try await mailbox.jobs(.waiting).count == 1)
        #expect(try await mailbox.jobs(.running).isEmpty)
        #expect(try await mailbox.cancelJobs(failed) == 1)
        try await mailbox.resumeWork()
        work.cancel()
        try await work.value
    }

    private struct NotDone: Error {}

    /// The server may take more than a second to write to the disk.
    private func fsyncedSends(_ office: PostOffice) async throws {
        let messages = [Message(text: "durable")]
        for recipients in [["alice"], names] {
            let fsynced = await code { try await office.send(messages, to: recipients, durability: .fsynced) }
            #expect(fsynced == (try await admin.knows("waitaof") ? nil : .unsupported))
        }
    }

    /// The server has no replica.
    private func replicatedSends(_ office: PostOffice) async throws {
        let messages = [Message(text: "durable")]
        for recipients in [["alice"], names] {
            let replicated = await code { try await office.send(messages, to: recipients, durability: .replicated(1)) }
            #expect(replicated == .notDurable)
        }
    }

    private func listens(_ office: PostOffice) async throws {
        let mailbox = try office.mailbox("alice")
        var delivery = try await mailbox.listen(limit: 1, maxBytes: 1)
        #expect(try await mailbox.acknowledge(delivery.cursor))
        // The send across partitions that was not replicated may still have to be taken over.
        let expected = try await admin.knows("waitaof") ? 4 : 2
        var durable = delivery.messages.count { $0.text == "durable" }
        for device in [Mailbox.defaultDevice, "phone"] {
            repeat {
                let timeout: Duration = durable < expected ? .seconds(60) : .zero
                delivery = try await mailbox.listen(after: nil, device: device, timeout: timeout)
                durable += delivery.messages.count { $0.text == "durable" }
                try await mailbox.acknowledge(delivery.cursor, device: device)
            } while !delivery.messages.isEmpty
        }
        let cursor = delivery.cursor
        let waiting = Task { try await mailbox.listen(after: cursor, device: "phone", timeout: .seconds(60)) }
        try await untilRegistered(mailbox)
        // The listener checks its mailbox again when the subscription is restored.
        _ = try await admin.send("CLIENT", "KILL", "TYPE", "pubsub")
        try await office.send("woken", to: "alice")
        #expect(try await waiting.value.messages.map(\.text) == ["woken"])
        for try await event in mailbox.messages() {
            guard case .message(let message) = event else { continue }
            #expect(message.text == "woken")
            break
        }
        let reader = try mailbox.reader(device: "reader")
        try await reader.acknowledge(try await reader.listen(timeout: .zero).cursor)
        #expect(try await mailbox.forget(device: "reader"))
    }

    private func limits(_ office: PostOffice) async throws {
        let mailbox = try office.mailbox("limited")
        var limits = MailboxLimits()
        (limits.maxMessages, limits.whenFull) = (2, .dropOldest)
        (limits.maxAge, limits.ttl, limits.deviceTTL) = (.seconds(60), .seconds(60), .seconds(60))
        try await mailbox.setLimits(limits)
        for number in 0..<3 { try await office.send("\(number)", to: "limited") }
        #expect(try await mailbox.count == 2)
        limits.whenFull = .reject
        limits.ttl = nil
        try await mailbox.setLimits(limits)
        #expect(await code { try await office.send("refused", to: "limited") } == .mailboxFull)
        #expect(await code { try await office.send("refused", to: "limited", "bob") } == .mailboxFull)
        try await mailbox.setLimits(nil)
        try await office.send("accepted", to: "limited")
    }

    /// Sends to and reads from mailboxes of which a part was deleted.
    private func losses(_ office: PostOffice) async throws {
        for part in ["mail", "box"] {
            let mailbox = try office.mailbox("damaged")
            try await office.send("a", to: "damaged")
            _ = try await mailbox.listen(device: part, timeout: .zero)
            for partition in 0..<4 {
                _ = try await admin.send("DEL", .string("ql:{\(namespace):\(partition)}:\(part):damaged"))
            }
            try await office.send("b", to: "damaged")
            _ = try await mailbox.listen(device: part, timeout: .zero)
        }
    }

    private func receivers(_ office: PostOffice) async throws {
        let store = RedisCursorStore(redis: redis, key: "ql:{\(namespace):cursor}:alice")
        let (handled, isHandled) = AsyncStream.makeStream(of: String.self)
        try await office.send(Message(text: "bad", type: "bad"), to: "received")
        try await office.send(Message(json: ["good"], type: "good"), to: "received")
        var receiver = Receiver(
            try office.mailbox("received"), device: "tablet", store: store,
            onFailure: .deadLetter(to: "dead letters", afterAttempts: 1)
        ) { _ in }
        receiver.handle([String].self, type: "good") { value, _ in isHandled.yield(value[0]) }
        let running = Task { [receiver] in try await receiver.run() }
        #expect(await handled.first { _ in true } == "good")
        try await until("the cursor is stored") { try await store.load() != nil }
        running.cancel()
        _ = await running.result
        #expect(try await office.mailbox("dead letters").count == 1)
    }

    private func untilRegistered(_ mailbox: Mailbox) async throws {
        try await until("the listener is registered") { try await mailbox.inspect()?.listeningProcesses == 1 }
    }

    private func code(_ body: () async throws -> Void) async -> QueueListenError.Code? {
        do {
            try await body()
            return nil
        } catch { return (error as? QueueListenError)?.code }
    }
}
