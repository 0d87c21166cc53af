// The wire format of a subscription connection: commands, replies and messages.

extension SubscriptionStateMachine.Command {
    var encoded: RedisCommand {
        switch self {
        case .ping: ["PING"]
        case .subscribe(let kind, let names): RedisCommand([.string(kind.verb(true))] + names.map { .string($0) })
        case .unsubscribe(let kind, let names): RedisCommand([.string(kind.verb(false))] + names.map { .string($0) })
        }
    }
}

extension SubscriptionTopic.Kind {
    func verb(_ subscribe: Bool) -> String {
        switch self {
        case .channel: subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE"
        case .pattern: subscribe ? "PSUBSCRIBE" : "PUNSUBSCRIBE"
        case .shard: subscribe ? "SSUBSCRIBE" : "SUNSUBSCRIBE"
        }
    }
}

/// A reply on a subscription connection that is not a message.
enum SubscriptionReply: Equatable {
    case confirmed(subscribe: Bool, SubscriptionTopic)
    case pong
    case error(String)

    /// Reads `[subscribe, name, count]` and the like, replies to `PING`, and errors. `nil` for
    /// anything else.
    init?(_ reply: RESPValue) {
        switch reply {
        case .error(let message): self = .error(message)
        case .status: self = .pong
        case .array(let parts):
            guard let kind = parts.first?.string else { return nil }
            if kind == "pong" {
                self = .pong
                return
            }
            guard parts.count == 3, let name = parts[1].string else { return nil }
            switch kind {
            case "subscribe": self = .confirmed(subscribe: true, .channel(name))
            case "psubscribe": self = .confirmed(subscribe: true, .pattern(name))
            case "ssubscribe": self = .confirmed(subscribe: true, .shard(name))
            case "unsubscribe": self = .confirmed(subscribe: false, .channel(name))
            case "punsubscribe": self = .confirmed(subscribe: false, .pattern(name))
            case "sunsubscribe": self = .confirmed(subscribe: false, .shard(name))
            default: return nil
            }
        default: return nil
        }
    }
}

extension RedisMessage {
    /// Reads `[message, channel, payload]`, `[smessage, channel, payload]` and `[pmessage, pattern,
    /// channel, payload]`.
    init?(_ parts: [RESPValue]) {
        guard case .bytes(let kind) = parts[0], case .bytes(let payload)? = parts.last else { return nil }
        func text(_ index: Int) -> String? {
            guard case .bytes(let bytes) = parts[index] else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        guard let name = text(1) else { return nil }
        // Distinguished by the first letter and the length, so that no strings are compared for each message.
        switch (kind.first, kind.count, parts.count) {
        case (UInt8(ascii: "m"), 7, 3): self.init(channel: name, topic: .channel(name), payload: payload)
        case (UInt8(ascii: "s"), 8, 3): self.init(channel: name, topic: .shard(name), payload: payload)
        case (UInt8(ascii: "p"), 8, 4): self.init(channel: text(2) ?? "", topic: .pattern(name), payload: payload)
        default: return nil
        }
    }
}
