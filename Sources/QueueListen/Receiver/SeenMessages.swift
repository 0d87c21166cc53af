import CoordinationBase
import DequeModule

/// The ids of the messages that were handled last: a filter of duplicates.
struct SeenMessages {
    private let capacity: Int
    private var order = Deque<ByteName>()
    private var ids: Set<ByteName> = []

    init(capacity: Int) { self.capacity = capacity }

    func contains(_ id: String) -> Bool { ids.contains(ByteName(id)) }

    /// Adds an id, and forgets the oldest one beyond the capacity. Messages without an id are never
    /// duplicates.
    mutating func insert(_ id: String) {
        let name = ByteName(id)
        guard !id.isEmpty, ids.insert(name).inserted else { return }
        order.append(name)
        if order.count > capacity { ids.remove(order.removeFirst()) }
    }
}
