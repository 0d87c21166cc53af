// The connection of a process for the wake-ups of its mailboxes.
import SimulatedRedis

@testable import Hiredis

/// The subscriptions of a process's post office. Messages arrive in order, and are lost when the connection breaks; then
/// each subscriber receives a gap.
///
/// `@unchecked`: a world is used by one thread.
final class SimulatedChannels: SubscriptionSource, @unchecked Sendable {
    private struct Channel {
        var queue: SubscriptionQueue
        var names: [String]
        /// The client of the server; `nil` while there is no connection.
        var client: ClientID?
        /// What belongs to an earlier connection is ignored.
        var generation = 0
        var lastArrival: Time = 0
    }

    private weak var process: SimulatedProcess?
    private var channels: [UInt64: Channel] = [:]

    init(of process: SimulatedProcess) { self.process = process }

    /// Subscribes, or fails some of the time.
    func subscribe(
        _ queue: SubscriptionQueue, _ topics: [SubscriptionTopic],
        _ completion: @escaping (Result<RESPValue, RedisError>) -> Void
    ) {
        guard let process else { return }
        let world = process.world
        world.after(world.random.time(100...5000), .step(process, -4)) { world in
            process.run { process in
                if world.plan.faults.isUnreachable(process, at: world.now) || world.random.isOne(in: 10) {
                    process.mail?.isTroubled()
                    return completion(.failure(RedisError(.cannotConnect, "there is no connection")))
                }
                self.channels[queue.id] = Channel(queue: queue, names: topics.map(\.name))
                self.connect(queue.id)
                world.after(world.random.time(50...2000), .step(process, -4)) { _ in
                    process.run { _ in completion(.success(.null)) }
                }
            }
        }
    }

    private func connect(_ id: UInt64) {
        guard let process, let channel = channels[id] else { return }
        let client = process.world.servers.connect()
        channels[id]!.client = client
        for name in channel.names { process.world.servers.subscribe(client, to: name) }
        _ = process.world.servers.takeDeliveries()
    }

    /// Lets the connection break: messages that are under way are lost.
    func breakOff() {
        guard let process, !channels.isEmpty else { return }
        process.mail?.isTroubled()
        for id in channels.keys.sorted() {
            guard let client = channels[id]!.client else { continue }
            process.world.servers.disconnect(client)
            channels[id]!.client = nil
            channels[id]!.generation += 1
            reconnect(id, process)
        }
    }

    private func reconnect(_ id: UInt64, _ process: SimulatedProcess) {
        let generation = channels[id]?.generation
        process.world.after(process.world.random.time(50_000...1_000_000), .timer(process)) { world in
            guard self.channels[id]?.generation == generation else { return }
            process.run { process in
                guard let channel = self.channels[id], channel.generation == generation else { return }
                process.mail?.isTroubled()
                if world.plan.faults.isUnreachable(process, at: world.now) { return self.reconnect(id, process) }
                self.connect(id)
                channel.queue.push(gap: .reconnected)
            }
        }
    }

    /// The process is dead.
    func end() {
        guard let process else { return }
        for channel in channels.values { if let client = channel.client { process.world.servers.disconnect(client) } }
        channels = [:]
    }

    /// Takes a message of the server, which arrives later. Returns false if it is for another client.
    func deliver(_ delivery: Delivery) -> Bool {
        guard let process, let (id, channel) = channels.first(where: { $0.value.client == delivery.client }) else {
            return false
        }
        guard let words = delivery.reply.elements, words.count == 3, let name = words[1].bytes?.text,
            let payload = words[2].bytes?.array
        else { return true }
        let arrival = max(channel.lastArrival, process.world.now + process.world.random.time(50...5000))
        channels[id]!.lastArrival = arrival
        let lane = Lane(kind: .message, process: process.number, number: 1_000_000 + channel.generation)
        process.world.agenda.add(
            at: arrival, lane, content: process.world.content(of: payload),
            isNeeded: { self.channels[id]?.generation == channel.generation }
        ) { _ in
            process.run { _ in
                guard self.channels[id]?.generation == channel.generation else { return }
                channel.queue.push(RedisMessage(channel: name, topic: .channel(name), payload: payload))
            }
        }
        return true
    }

    // MARK: SubscriptionSource

    func join(_ queue: SubscriptionQueue, topics: [SubscriptionTopic]) async throws(RedisError) {}

    func leave(_ id: UInt64, topics: [SubscriptionTopic]?) async { leaveSoon(id) }

    func leaveSoon(_ id: UInt64) {
        if let client = channels.removeValue(forKey: id)?.client { process?.world.servers.disconnect(client) }
    }
}
