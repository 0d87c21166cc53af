// Helpers of the tests of publish and subscribe.
import Hiredis
import TestRandom
import TestSupport
import Testing

struct NotAMessage: Error {
    var event: SubscriptionEvent?
}

extension Subscription {
    /// Returns the next event, which must be a message.
    func message() async throws -> RedisMessage {
        let event = try await next()
        guard case .message(let message)? = event else {
            Issue.record("\(String(describing: event)) instead of a message")
            throw NotAMessage(event: event)
        }
        return message
    }

    /// Returns the texts of the next `count` events, all of which must be messages.
    func texts(_ count: Int) async throws -> [String] {
        var texts: [String] = []
        for _ in 0..<count { texts.append(try await message().text) }
        return texts
    }
}

extension RedisClient {
    /// Returns the number of connections that have subscribed to a channel.
    func subscribers(of channel: String) async throws -> Int {
        try await send("PUBSUB", "NUMSUB", .string(channel)).array?.last?.integer ?? -1
    }

    func activeChannels() async throws -> [String] {
        try await send("PUBSUB", "CHANNELS").array?.compactMap(\.string).sorted() ?? []
    }

    /// Returns the number of connections with subscriptions.
    func subscriptionConnections() async throws -> Int {
        let list = try await send("CLIENT", "LIST", "TYPE", "pubsub").string ?? ""
        return list.split(whereSeparator: \.isNewline).count
    }

    /// Kills all connections with subscriptions, and returns their number.
    @discardableResult
    func killSubscriptions() async throws -> Int { try await integer("CLIENT", "KILL", "TYPE", "pubsub") }

    /// Publishes numbers on a channel, in pipelines of up to 1,000.
    func publish(_ numbers: Range<Int>, to channel: String) async throws {
        var rest = numbers
        while !rest.isEmpty {
            let part = rest.prefix(1000)
            _ = try await pipeline(part.map { ["PUBLISH", .string(channel), .integer($0)] })
            rest = part.upperBound..<numbers.upperBound
        }
    }

    /// Publishes numbers in one pipeline, and kills the connections with subscriptions between two of them: the server
    /// publishes the next ones before anyone can subscribe again, so they are lost for certain, on any machine.
    func publishAndKill(_ numbers: Range<Int>, to channel: String, using generator: inout SplitMix) async throws {
        var commands: [RedisCommand] = numbers.map { ["PUBLISH", .string(channel), .integer($0)] }
        commands.insert(
            ["CLIENT", "KILL", "TYPE", "pubsub"], at: Int.random(in: 1..<commands.count, using: &generator))
        _ = try await pipeline(commands)
    }
}
