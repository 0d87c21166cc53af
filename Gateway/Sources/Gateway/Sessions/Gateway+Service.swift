// The node's subscription to the ends of sessions.
import Hiredis
import Logging
import QueueListen
public import ServiceLifecycle

/// A service of the node: run it with the others in the application's service group.
extension Gateway: Service {
    /// Listens for logouts and newer logins at other nodes, and ends the streams and polls of these
    /// sessions at once.
    ///
    /// Without it, and after a lost publication, a stream ends at its next sign of life.
    ///
    /// - Throws: nothing; it returns at a graceful shutdown and when the task is cancelled.
    public func run() async throws {
        await cancelWhenGracefulShutdown {
            var wasRefused = false
            while !Task.isCancelled {
                do {
                    try await self.sessions.redis.withSubscription(to: [.channel(self.sessions.endedChannel)]) {
                        try await self.readEnds($0)
                    }
                } catch {
                    let level: Logger.Level =
                        (error as? RedisError)?.code == .notPermitted && !wasRefused ? .warning : .debug
                    if level == .warning { wasRefused = true }
                    self.logger.log(level: level, "no subscription to ended sessions", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func readEnds(_ events: Subscription) async throws {
        // A session may have ended before the subscription began.
        await endStreams(of: watch.sessions)
        for try await event in events {
            switch event {
            case .message(let message):
                // The message is not believed: only Redis knows how the session has ended, and whether it has.
                if let id = SessionID(message.text), watch.contains(id) { await endStreams(of: [id]) }
            case .gap: await endStreams(of: watch.sessions)
            }
        }
    }

    private func endStreams(of sessions: [SessionID]) async {
        for id in sessions {
            if Task.isCancelled { return }
            if let end = await endOfSession(id) { watch.end(id, end) }
        }
    }

    /// Returns how a session has ended; `nil` while it lasts, or if that is not known at present.
    func endOfSession(_ id: SessionID) async -> SessionWatch.End? {
        do { try await sessions.check(id) } catch let problem as Problem {
            return SessionWatch.End(problem)
        } catch {
            return nil
        }
        return nil
    }
}
