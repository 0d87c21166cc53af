/// Recognizes messages that were delivered before: by their position, and by their id after Redis has lost the
/// position.
struct Duplicates {
    /// The number of messages that are remembered.
    static let maxCount = 4096

    /// As bytes: Swift considers texts equal that are different ids.
    private var seen: Set<[UInt8]> = []
    /// The keys in the order in which they came, in a ring.
    private var order: [[UInt8]] = []
    private var oldest = 0

    /// Remembers a message. Returns whether it is new.
    mutating func insert(_ message: GatewayMessage) -> Bool {
        let isNewPosition = remember(Array("cursor \(message.cursor)".utf8))
        let isNewMessage = message.id.isEmpty || remember(Array("id \(message.id)".utf8))
        return isNewPosition && isNewMessage
    }

    private mutating func remember(_ key: [UInt8]) -> Bool {
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
