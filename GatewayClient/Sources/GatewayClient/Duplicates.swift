/// Recognizes messages that were delivered before: by their position, and by their id after Redis has lost the
/// position.
struct Duplicates {
    /// The number of messages that are remembered.
    static let maxCount = 4096

    private var seen: Set<String> = []
    /// The keys in the order in which they came, in a ring.
    private var order: [String] = []
    private var oldest = 0

    /// Remembers a message. Returns whether it is new.
    mutating func insert(_ message: GatewayMessage) -> Bool {
        let isNewPosition = remember("cursor " + message.cursor)
        let isNewMessage = message.id.isEmpty || remember("id " + message.id)
        return isNewPosition && isNewMessage
    }

    private mutating func remember(_ key: String) -> Bool {
        guard seen.insert(key).inserted else { return false }
        if order.count < 2 * Self.maxCount {
            order.append(key)
        } else {
            seen.remove(order[oldest])
            order[oldest] = key
            oldest = (oldest + 1) % order.count
        }
        return true
    }
}
