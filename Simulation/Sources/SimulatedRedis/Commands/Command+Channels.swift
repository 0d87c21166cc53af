// Commands on channels: publish and subscribe.

extension Command {
    static let channelCommands = [
        Command("PUBLISH", 3, .none) { server, words throws(RedisError) in
            // Clients may subscribe to replicas, too.
            server.noteEffect(words)
            return .integer(Int64(server.publish(words[2], on: words[1])))
        },
        Command("SUBSCRIBE", -2, .none, [.notInScripts, .whileSubscribed]) { server, words throws(RedisError) in
            guard let caller = server.caller, !server.isInTransaction else {
                throw RedisError("ERR SUBSCRIBE without a client or in a transaction is not simulated")
            }
            for channel in words.dropFirst() { server.subscribe(caller, to: channel) }
            return nil
        },
        Command("UNSUBSCRIBE", -1, .none, [.notInScripts, .whileSubscribed]) { server, words throws(RedisError) in
            guard let caller = server.caller, !server.isInTransaction else {
                throw RedisError("ERR UNSUBSCRIBE without a client or in a transaction is not simulated")
            }
            server.unsubscribe(caller, from: Array(words.dropFirst()))
            return nil
        },
    ]
}

extension SimulatedRedis {
    /// Sends a message to all clients that subscribe to a channel. Returns their number.
    mutating func publish(_ message: Bytes, on channel: Bytes) -> Int {
        var count = 0
        for client in clients.all where clients[client]?.channels.contains(channel) == true {
            clients.deliver(.bulks(["message", channel, message]), to: client)
            count += 1
        }
        return count
    }

    fileprivate mutating func subscribe(_ client: ClientID, to channel: Bytes) {
        if clients[client]?.channels.contains(channel) == false { clients[client]?.channels.append(channel) }
        let count = Int64(clients[client]?.channels.count ?? 0)
        clients.deliver(.array([.bulk("subscribe"), .bulk(channel), .integer(count)]), to: client)
    }

    fileprivate mutating func unsubscribe(_ client: ClientID, from channels: [Bytes]) {
        let ended = channels.isEmpty ? clients[client]?.channels ?? [] : channels
        for channel in ended {
            clients[client]?.channels.removeAll { $0 == channel }
            let count = Int64(clients[client]?.channels.count ?? 0)
            clients.deliver(.array([.bulk("unsubscribe"), .bulk(channel), .integer(count)]), to: client)
        }
        if ended.isEmpty { clients.deliver(.array([.bulk("unsubscribe"), .null, .integer(0)]), to: client) }
    }
}
