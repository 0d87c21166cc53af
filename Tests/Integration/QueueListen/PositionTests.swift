import QueueListen
import TestSupport
import Testing

@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Positions for new devices", .serialized)
    struct PositionTests {
        private func read(_ mailbox: Mailbox, _ device: String) async throws -> [Int] {
            guard case .messages(let messages) = try await mailbox.listen(device: device, timeout: .zero).status else {
                return []
            }
            return messages.map(\.index)
        }

        @Test("a new device of a room begins now, or some messages back, wherever the room begins")
        func begins() async throws {
            try await withOffice { office, _, _ in
                let room = try office.mailbox("room")
                #expect(try await room.cursor(beforeLast: 3) == Cursor.none)
                try await room.register(device: "archive")
                for number in 1...60 { try await office.send("\(number)", to: ["room"]) }
                for (device, back, expected) in [
                    ("now", 0, []), ("some", 50, Array(11...60)), ("one", 1, [60]), ("all", 60, Array(1...60)),
                    ("more", 1000, Array(1...60)),
                ] {
                    try await room.acknowledge(room.cursor(beforeLast: back), device: device)
                    #expect(try await read(room, device) == expected, "\(device)")
                }
                try await office.send("61", to: ["room"])
                #expect(try await read(room, "now") == [61])
                // The first messages are gone.
                let last = try await room.cursor()
                for device in ["archive", "now", "some", "one", "all"] {
                    try await room.acknowledge(last, device: device)
                }
                try await room.acknowledge(room.cursor(beforeLast: 11), device: "more")
                #expect(try await room.inspect()?.first == 51)
                try await room.acknowledge(room.cursor(beforeLast: 1000), device: "late")
                #expect(try await read(room, "late") == Array(51...61))
                // Nothing is left.
                try await room.acknowledge(last, device: "more")
                try await room.acknowledge(last, device: "late")
                #expect(try await room.cursor(beforeLast: 5) == last)
            }
        }

        @Test("a text is sent to the recipients of an array")
        func array() async throws {
            try await withOffice { office, _, _ in
                let recipients = ["alice", "bob"]
                try await office.send("hi", to: recipients)
                try await office.send(Message(text: "there"), to: recipients, id: "1")
                for name in recipients { #expect(try await office.mailbox(name).count == 2) }
            }
        }
    }
}
