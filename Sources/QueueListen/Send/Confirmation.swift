// Waits until what was sent is as safe as the sender wants it.
import Hiredis

struct Confirmation: Sendable {
    let redis: any Redis
    let durability: Durability

    func confirmed(_ receipt: Receipt) async throws(QueueListenError) -> Receipt {
        switch durability {
        case .memory: return receipt
        case .replicated, .fsynced:
            throw QueueListenError(.unsupported, "\(durability) is not there yet")
        }
    }
}
