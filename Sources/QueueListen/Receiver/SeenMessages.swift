// The duplicate filter.
import DequeModule

/// The ids of the last messages that were handled.
struct SeenMessages {
    private let capacity: Int
    private var order = Deque<String>()
    private var ids: Set<String> = []

    init(capacity: Int) { self.capacity = capacity }

    func contains(_ id: String) -> Bool { ids.contains(id) }

    /// Messages without an id are never taken for one another.
    mutating func insert(_ id: String) {
        guard !id.isEmpty, ids.insert(id).inserted else { return }
        order.append(id)
        if order.count > capacity { ids.remove(order.removeFirst()) }
    }
}
