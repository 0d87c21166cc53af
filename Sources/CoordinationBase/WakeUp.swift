// The channel on which Redis notifies a process of changes.
package import Hiredis

/// An event of a wake-up channel.
package enum WakeUp: Sendable {
    /// The server has confirmed the subscription: messages published from now on arrive.
    case subscribed
    /// The subscription failed and will be tried again.
    case unsubscribed(RedisError)
    /// A message.
    case message([UInt8])
    /// Messages may have been missed.
    case gap
}

/// Receives wake-ups until the task is cancelled. Subscribes again after every loss of the connection.
///
/// A wake-up may be lost: the receiver must reach the same state later.
///
/// - Parameter receive: called on the client's executor, on which the caller must be too.
package func receiveWakeUps(
    from redis: any EventLoopRedis, on channels: String..., clock: MonotonicClock,
    isolation: isolated (any Actor)? = #isolation, _ receive: @escaping @Sendable (WakeUp) -> Void
) async {
    var pause = Duration.milliseconds(50)
    while !Task.isCancelled {
        do throws(RedisError) {
            let subscription = try await redis.subscribe(
                to: channels.map { .channel($0) }, buffer: SubscriptionBuffer(messages: 16_384, policy: .dropOldest))
            pause = .milliseconds(50)
            receive(.subscribed)
            try await redis.drain(subscription, isolation: isolation) { event in
                switch event {
                case .message(let message): receive(.message(message.payload))
                case .gap: receive(.gap)
                }
            }
            // The messages end without an error only when the client has stopped.
            if !Task.isCancelled { receive(.unsubscribed(RedisError(.clientStopped, "the client has stopped"))) }
            return
        } catch {
            if Task.isCancelled { return }
            receive(.unsubscribed(error))
            try? await clock.sleep(pause)
            pause = min(pause * 2, .seconds(5))
        }
    }
}
