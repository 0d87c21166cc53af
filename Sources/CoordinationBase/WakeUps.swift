// The channel on which a process hears that something may have changed for it.
package import Hiredis

/// What arrives on a wake-up channel.
package enum WakeUp: Sendable {
    /// The server has confirmed the subscription: what is published from now on arrives.
    case listening
    /// It cannot be had now, and will be tried again.
    case deaf(RedisError)
    case hint([UInt8])
    /// Hints may have been missed.
    case gap
}

/// Listens until the task is cancelled, through every break. A wake-up is a hint: whoever listens must do as well, only
/// slower, when none comes.
///
/// `receive` is called on the client's executor, on which the caller must be too.
package func listen(
    _ redis: any EventLoopRedis, to channels: String..., isolation: isolated (any Actor)? = #isolation,
    _ receive: @escaping @Sendable (WakeUp) -> Void
) async {
    var pause = Duration.milliseconds(50)
    while !Task.isCancelled {
        do throws(RedisError) {
            let subscription = try await redis.subscribe(
                to: channels.map { .channel($0) }, buffer: SubscriptionBuffer(messages: 16_384, policy: .dropOldest))
            pause = .milliseconds(50)
            receive(.listening)
            try await redis.drain(subscription, isolation: isolation) { event in
                switch event {
                case .message(let message): receive(.hint(message.payload))
                case .gap: receive(.gap)
                }
            }
            // The client has stopped: whoever waits finds that out by asking.
            if !Task.isCancelled {
                receive(.deaf(RedisError(.clientStopped, "the client has stopped")))
            }
            return
        } catch {
            if Task.isCancelled { return }
            receive(.deaf(error))
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .seconds(5))
        }
    }
}
