import GameServices
import Gateway
import Logging

/// The players who listen at any node: with a page, or with a program that polls.
///
/// It decides who needs a push notification. A registration in the mailbox does not: it outlasts its reader by minutes, so a
/// player who has just closed the page would get none.
struct Attendance: Sendable {
    private let bucket: PresenceBucket
    private let logger: Logger

    init(_ presence: Presence, logger: Logger) throws {
        bucket = try presence.bucket("attendance")
        self.logger = logger
    }

    /// Returns whether a player listens. If a player's node has died, this lasts until its session has expired, unless the
    /// player listens at another one.
    func isListening(_ player: String) async throws -> Bool { try await bucket.object(player) != nil }

    /// Keeps a player listed until the task is cancelled.
    func serve(_ caller: Caller) async {
        while !Task.isCancelled {
            do {
                let losses = try await bucket.losses()
                let owner = try await bucket.connect(user: caller.user, client: caller.device)
                await list(owner, until: losses)
                try await bucket.disconnect(owner)
            } catch { await pause(after: error) }
        }
    }

    /// Without a grace period: a needless notification does less harm than one that is missing.
    private func list(_ owner: PresenceOwner, until losses: AsyncStream<PresenceLoss>) async {
        do { try await bucket.put(owner.user, "", owner: owner, scope: .user) } catch {
            return await pause(after: error)
        }
        for await loss in losses where loss.owners.contains(owner) { return }
    }

    private func pause(after error: any Error) async {
        guard !Task.isCancelled else { return }
        logger.notice("a player cannot be listed", metadata: ["error": "\(error)"])
        try? await Task.sleep(for: .seconds(1))
    }
}
