extension Subscription {
    /// Returns the same events with their payloads decoded.
    public func decoded<Codec: MessageCodec>(
        with codec: Codec
    ) -> AsyncMapSequence<Subscription, TypedSubscriptionEvent<Codec.Message>> {
        map { event in
            switch event {
            case .gap(let gap): return .gap(gap)
            case .message(let raw):
                do { return .message(try codec.decode(raw.payload), from: raw) } catch {
                    return .undecodable(raw, error)
                }
            }
        }
    }

    /// Returns the same events with their payloads decoded from JSON.
    public func decoded<Message: Codable>(
        as type: Message.Type
    ) -> AsyncMapSequence<Subscription, TypedSubscriptionEvent<Message>> {
        decoded(with: JSONMessageCodec(type))
    }
}
