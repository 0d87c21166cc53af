import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    /// Readers whose position is separate from what their device has acknowledged.
    @Suite("A reader of a device", .serialized)
    struct DeviceReaderTests {
        /// Runs two post offices, as two processes would have.
        private func withTwoOffices(
            _ configure: (inout PostOfficeConfiguration) -> Void = { _ in },
            _ body: (PostOffice, PostOffice, RedisClient) async throws -> Void
        ) async throws {
            try await withServer { _, redis, other in
                var configuration = PostOfficeConfiguration()
                configure(&configuration)
                try await withPostOffice(redis: redis, configuration: configuration) { first in
                    try await withPostOffice(redis: other, configuration: configuration) { second in
                        try await body(first, second, other)
                    }
                }
            }
        }

        private func texts(_ count: Int) -> [Message] { (1...count).map { Message(text: "\($0)") } }

        @Test("reads far ahead and dies, and another one resumes at the last acknowledgement with nothing lost")
        func resumes() async throws {
            try await withTwoOffices { first, second, _ in
                try await first.send(texts(500), to: ["alice"])
                let reader = try first.mailbox("alice").reader(device: "phone")
                var read: [ReceivedMessage] = []
                var cursor: Cursor?
                while read.count < 500 {
                    let delivery = try await reader.listen(after: cursor, limit: 50, timeout: .seconds(60))
                    read += delivery.messages
                    cursor = delivery.cursor
                }
                #expect(read.map(\.text) == (1...500).map { "\($0)" })
                #expect(try await first.mailbox("alice").count == 500)
                #expect(try await reader.acknowledge(read[99].cursor))
                #expect(try await first.mailbox("alice").count == 400)

                let next = try second.mailbox("alice").reader(device: "phone")
                let rest = try await next.listen(timeout: .zero)
                #expect(rest.messages.map(\.index) == Array(101...500))
                // A client that has processed more than it has acknowledged names its position.
                #expect(try await next.listen(after: read[398].cursor, timeout: .zero).messages.first?.index == 400)
                #expect(try await next.listen(after: read[99].cursor, limit: 1, timeout: .zero).word == "101")
                #expect(try await first.mailbox("alice").count == 400)
            }
        }

        @Test("acknowledges nothing for a new device that begins in the middle, a listen does")
        func newDevice() async throws {
            try await withOffice { office, _, _ in
                try await office.send(texts(3), to: ["alice"])
                let mailbox = try office.mailbox("alice")
                let second = try await mailbox.peek()[1].cursor
                #expect(try await mailbox.reader(device: "new").listen(after: second, timeout: .zero).word == "3")
                #expect(try await mailbox.devices().map(\.acknowledged.index) == [0])
                #expect(try await mailbox.look(after: second, device: "new").word == "3")
                #expect(try await mailbox.devices().map(\.acknowledged.index) == [2])
                #expect(try await mailbox.count == 1)
            }
        }

        @Test("waits at its position, and receives a message that is sent elsewhere", arguments: [true, false])
        func waits(usesWakeUps: Bool) async throws {
            try await withTwoOffices({
                $0.usesWakeUps = usesWakeUps
                $0.pollInterval = .milliseconds(20)
            }) { first, second, _ in
                try await first.send(texts(2), to: ["alice"])
                let reader = try first.mailbox("alice").reader()
                var cursor = try await reader.listen().cursor
                for text in ["a", "b", "c"] {
                    let start = cursor
                    async let delivery = reader.listen(after: start, timeout: .seconds(60))
                    try await first.untilWaiting(1, at: "alice")
                    try await second.send(text, to: "alice")
                    let received = try await delivery
                    #expect(received.word == text)
                    cursor = received.cursor
                }
                #expect(try await first.mailbox("alice").count == 5)
            }
        }

        @Test("is superseded for good by a newer one elsewhere, whether it waits or is between two calls")
        func superseded() async throws {
            try await withTwoOffices { first, second, _ in
                for isWaiting in [true, false] {
                    let older = try first.mailbox("alice").reader()
                    #expect(try await older.listen(timeout: .zero).word == "timedOut")
                    let newer = try second.mailbox("alice").reader()
                    if isWaiting {
                        async let end = older.listen(timeout: .seconds(60))
                        try await first.untilWaiting(1, at: "alice")
                        #expect(try await newer.listen(timeout: .zero).word == "timedOut")
                        #expect(try await end.word == "superseded")
                    } else {
                        #expect(try await newer.listen(timeout: .zero).word == "timedOut")
                    }
                    async let waiting = newer.listen(timeout: .seconds(60))
                    try await second.untilWaiting(1, at: "alice")
                    // The older reader does not take the device back, and does not disturb the newer one.
                    for _ in 0..<2 { #expect(try await older.listen(timeout: .zero).word == "superseded") }
                    try await first.send("x", to: "alice")
                    let received = try await waiting
                    #expect(received.word == "x")
                    try await newer.acknowledge(received.cursor)
                }
            }
        }

        @Test("is superseded for good by a newer one of the same process")
        func supersededInProcess() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let older = try mailbox.reader()
                let newer = try mailbox.reader()
                async let end = older.listen(timeout: .seconds(60))
                try await office.untilWaiting(1, at: "alice")
                async let waiting = newer.listen(timeout: .seconds(60))
                #expect(try await end.word == "superseded")
                try await office.untilWaiting(1, at: "alice")
                #expect(try await older.listen(timeout: .zero).word == "superseded")
                try await office.send("x", to: "alice")
                #expect(try await waiting.word == "x")
            }
        }

        @Test("ends a call that waits and all later ones when it is cancelled, and acknowledges still")
        func cancelled() async throws {
            try await withOffice { office, _, _ in
                let reader = try office.mailbox("alice").reader()
                try await office.send("x", to: "alice")
                let cursor = try await reader.listen().cursor
                let call = Task { try await reader.listen(after: cursor) }
                try await office.untilWaiting(1, at: "alice")
                reader.cancel()
                await #expect(throws: QueueListenError.self) { try await call.value }
                try await office.untilWaiting(0, at: "alice")
                let error = await #expect(throws: QueueListenError.self) { try await reader.listen(timeout: .zero) }
                #expect(error?.code == .cancelled)
                #expect(try await reader.acknowledge(cursor))
            }
        }

        @Test("is cancelled at any moment of a call, and no call waits for ever")
        func cancelledAtAnyMoment() async throws {
            try await withOffice { office, _, _ in
                for _ in 0..<200 {
                    let reader = try office.mailbox("alice").reader()
                    let call = Task { try await reader.listen() }
                    let cancel = Task { reader.cancel() }
                    await #expect(throws: QueueListenError.self) { try await call.value }
                    await cancel.value
                }
            }
        }

        @Test("is notified of losses, and continues at the first message that is left")
        func losses() async throws {
            try await withOffice(configure: {
                $0.limits.maxMessages = 3
                $0.limits.whenFull = .dropOldest
            }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let reader = try mailbox.reader()
                try await office.send(texts(3), to: ["alice"])
                let first = try await reader.listen(limit: 1)
                try await office.send(texts(2), to: ["alice"])
                let truncated = try await reader.listen(after: first.cursor)
                #expect(truncated.word == "truncated 3")
                let rest = try await reader.listen(after: truncated.cursor)
                #expect(rest.messages.map(\.index) == [3, 4, 5])
                let ahead = Cursor(epoch: rest.cursor.epoch, index: 9, tag: 1)
                #expect(try await reader.listen(after: ahead).word == "forked")
                try await mailbox.delete()
                #expect(try await reader.listen(after: rest.cursor).word == "reset")
                #expect(try await mailbox.count == 0)
            }
        }

        @Test("a forgotten device keeps no messages, and is a new one when it listens again")
        func forgotten() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                #expect(try await mailbox.forget(device: "phone") == false)
                try await office.send(texts(3), to: ["alice"])
                let phone = try await mailbox.look(device: "phone", limit: 1)
                let tablet = try await mailbox.look(device: "tablet")
                try await mailbox.acknowledge(tablet.cursor, device: "tablet")
                #expect(try await mailbox.count == 3)
                #expect(try await mailbox.forget(device: "phone"))
                #expect(try await mailbox.devices().map(\.name) == ["tablet"])
                #expect(try await mailbox.look(after: tablet.cursor, device: "tablet").word == "timedOut")
                #expect(try await mailbox.count == 0)
                #expect(try await mailbox.forget(device: "phone") == false)
                #expect(try await mailbox.look(after: phone.cursor, device: "phone").word == "truncated 4")
                let error = await errorOf { _ = try await mailbox.forget(device: "") }
                #expect(error?.code == .invalidArgument)
            }
        }

        @Test("a registered device is known, its readers go on, and messages are kept for it")
        func registered() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                #expect(try await mailbox.register(device: "phone").index == 0)
                try await office.send(texts(3), to: ["alice"])
                let tablet = try await mailbox.look(device: "tablet")
                try await mailbox.acknowledge(tablet.cursor, device: "tablet")
                #expect(try await mailbox.count == 3)
                let reader = try mailbox.reader(device: "phone")
                let all = try await reader.listen()
                #expect(all.messages.count == 3)
                let waiting = Task { try await reader.listen(after: all.cursor, timeout: .seconds(60)) }
                try await until("the reader waits") { try await mailbox.inspect()?.listeningProcesses == 1 }
                try await mailbox.acknowledge(all.messages[0].cursor, device: "phone")
                #expect(try await mailbox.register(device: "phone") == all.messages[0].cursor)
                try await office.send(texts(1), to: ["alice"])
                #expect(try await waiting.value.messages.count == 1)
            }
        }

        @Test("a registration reports no position after a loss, and hides the loss from no reader")
        func registeredAfterLoss() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                var limits = MailboxLimits()
                (limits.maxMessages, limits.whenFull) = (3, .dropOldest)
                try await mailbox.setLimits(limits)
                let first = try await mailbox.register(device: "phone")
                for _ in 1...5 { try await office.send(texts(1), to: ["alice"]) }
                #expect(try await mailbox.register(device: "phone") == .none)
                #expect(try await mailbox.look(device: "phone").word == "truncated 3")
                try await mailbox.delete()
                let again = try await mailbox.register(device: "phone")
                #expect(again.index == 0 && again != first)
            }
        }

        @Test("a registration with 64 other devices is refused, and one of a known device is not")
        func tooManyDevices() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for number in 0..<64 { try await mailbox.register(device: "\(number)") }
                #expect(await errorOf { try await mailbox.register(device: "more") }?.code == .conflict)
                try await mailbox.register(device: "63")
                #expect(try await mailbox.devices().count == 64)
            }
        }

        @Test("a reader that requires its device makes no device known, and changes nothing where it is unknown")
        func requiresDevice() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let early = try mailbox.reader(device: "phone", requiresDevice: true)
                #expect(await errorOf { _ = try await early.listen(timeout: .zero) }?.code == .unknownDevice)
                #expect(try await mailbox.inspect() == nil)
                try await mailbox.register(device: "phone")
                try await office.send(texts(2), to: ["alice"])
                let page = try await early.listen(timeout: .zero)
                #expect(page.messages.count == 2)
                let waiting = Task { try await early.listen(after: page.cursor, timeout: .seconds(60)) }
                try await until("the reader waits") { try await mailbox.inspect()?.listeningProcesses == 1 }
                try await mailbox.forget(device: "phone")
                // A wake-up does not contain so long a message: the reader reads.
                try await office.send([Message(text: String(repeating: "x", count: 5000))], to: ["alice"])
                #expect(await errorOf { _ = try await waiting.value }?.code == .unknownDevice)
                let later = try mailbox.reader(device: "phone", requiresDevice: true)
                #expect(await errorOf { _ = try await early.listen(after: page.cursor) }?.code == .unknownDevice)
                #expect(await errorOf { _ = try await later.listen(after: page.cursor) }?.code == .unknownDevice)
                #expect(await errorOf { _ = try await later.acknowledge(page.cursor) }?.code == .unknownDevice)
                #expect(try await mailbox.devices().isEmpty)
                #expect(try await mailbox.count == 3)
                // Others do.
                #expect(try await mailbox.reader(device: "phone").acknowledge(page.cursor))
                #expect(try await later.listen(after: page.cursor).messages.count == 1)
            }
        }

        @Test("a device that was seen since its forgetting was decided is not forgotten")
        func forgottenUnlessSeen() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for round in 0..<200 {
                    try await mailbox.register(device: "phone")
                    let known = try #require(await mailbox.devices().first)
                    if round.isMultiple(of: 2) {
                        try await mailbox.register(device: "phone")
                    } else {
                        _ = try await mailbox.look(device: "phone")
                    }
                    #expect(try await !mailbox.forget(known))
                    let seen = try #require(await mailbox.devices().first)
                    #expect(try await mailbox.forget(seen))
                    #expect(try await !mailbox.forget(seen))
                    #expect(try await mailbox.devices().isEmpty)
                }
            }
        }
    }
}
