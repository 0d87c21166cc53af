import DequeModule

/// The ids of the messages that were handled last: a filter of duplicates.
struct SeenMessages {
    private let capacity: Int
    private var order = Deque<String>()
    private var ids: Set<String> = []

    init(capacity: Int) { self.capacity = capacity }

    func contains(_ id: String) -> Bool { ids.contains(id) }

    /// Adds an id, and forgets the oldest one beyond the capacity. Messages without an id are never
    /// duplicates.
    mutating func insert(_ id: String) {
        guard !id.isEmpty, ids.insert(id).inserted else { return }
        order.append(id)
        if order.count > capacity { ids.remove(order.removeFirst()) }
    }
}
