import QueueListen

/// Sends to Alice and Bob at once: each message reaches both of them or neither.
///
/// The id makes a second run of a killed sender harmless: what was sent is not sent again.
func send(_ count: Int, _ office: PostOffice) async throws {
    guard count > 0 else { return }
    for number in 1...count {
        try await office.send(Message(text: "\(number)", type: "move"), to: "alice", "bob", id: "game-7-move-\(number)")
    }
}
