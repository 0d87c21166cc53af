import QueueListen

/// Sends numbered messages to Alice and Bob. Each message reaches both or neither.
///
/// The id makes each send idempotent, so that a restarted sender sends no message twice.
func send(_ count: Int, _ office: PostOffice) async throws {
    guard count > 0 else { return }
    for number in 1...count {
        try await office.send(Message(text: "\(number)", type: "move"), to: "alice", "bob", id: "game-7-move-\(number)")
    }
}
