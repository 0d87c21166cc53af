import QueueListen

/// Sends to Alice and Bob: each message reaches both of them or neither.
///
/// The ids make a second run after a crash harmless: a message that was sent is not sent again.
func send(_ count: Int, _ office: PostOffice) async throws {
    guard count > 0 else { return }
    for number in 1...count {
        try await office.send(Message(text: "\(number)", type: "move"), to: "alice", "bob", id: "game-7-move-\(number)")
    }
}
