import NIOConcurrencyHelpers
import NIOCore

/// Calls functions at deadlines on an event loop, with one timer for all of them.
///
/// An event loop cancels a timer in time that is linear in the number of its timers. With a timer for
/// each of many waiting callers, the loop would stand still when they are cancelled together.
final class DeadlineQueue: Sendable {
    private struct State {
        var heap = DeadlineHeap()
        /// The functions to call. An entry of the heap whose id is missing here has been cancelled.
        var actions: [UInt64: @Sendable () -> Void] = [:]
        /// The earliest time at which a timer fires.
        var armed: NIODeadline?

        /// Removes entries that have been cancelled, when they are the most.
        mutating func compact() {
            guard heap.count > 2 * actions.count + 64 else { return }
            heap.removeAll { actions[$0] == nil }
        }

        /// Returns the deadline for which a timer must be set, if any.
        mutating func nextTimer() -> NIODeadline? {
            while let first = heap.first, actions[first.id] == nil { heap.removeFirst() }
            guard let first = heap.first, first.deadline < .distantFuture, armed.map({ first.deadline < $0 }) ?? true
            else { return nil }
            armed = first.deadline
            return armed
        }
    }

    private let state = NIOLockedValueBox(State())

    /// For tests: the number of entries in memory, including cancelled ones.
    var storedCount: Int { state.withLockedValue { $0.heap.count } }

    /// Calls `action` on the event loop at a deadline, unless its id is cancelled before.
    func add(
        _ id: UInt64, at deadline: NIODeadline, on eventLoop: any EventLoop, _ action: @escaping @Sendable () -> Void
    ) {
        let timer = state.withLockedValue { state in
            state.actions[id] = action
            state.heap.insert(DeadlineHeap.Entry(deadline: deadline, id: id))
            return state.nextTimer()
        }
        if let timer { arm(timer, eventLoop) }
    }

    /// Forgets an id. No effect if its function has been called.
    func cancel(_ id: UInt64) {
        state.withLockedValue { state in
            if state.actions.removeValue(forKey: id) != nil { state.compact() }
        }
    }

    /// Sets a timer, which is never cancelled: one that fires too early sets another.
    private func arm(_ deadline: NIODeadline, _ eventLoop: any EventLoop) {
        eventLoop.scheduleTask(deadline: deadline) { [weak self] in self?.fire(deadline, eventLoop) }
    }

    private func fire(_ deadline: NIODeadline, _ eventLoop: any EventLoop) {
        let now = max(eventLoop.now, deadline)
        let (due, timer) = state.withLockedValue { state in
            if let armed = state.armed, armed <= now { state.armed = nil }
            var due: [@Sendable () -> Void] = []
            while let first = state.heap.first, first.deadline <= now {
                state.heap.removeFirst()
                if let action = state.actions.removeValue(forKey: first.id) { due.append(action) }
            }
            return (due, state.nextTimer())
        }
        if let timer { arm(timer, eventLoop) }
        for action in due { action() }
    }
}

/// A binary heap of ids by their deadlines.
struct DeadlineHeap {
    struct Entry {
        var deadline: NIODeadline
        var id: UInt64
    }

    private var entries: [Entry] = []

    var count: Int { entries.count }
    var first: Entry? { entries.first }

    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        var index = entries.count - 1
        while index > 0, entry.deadline < entries[(index - 1) / 2].deadline {
            entries[index] = entries[(index - 1) / 2]
            index = (index - 1) / 2
        }
        entries[index] = entry
    }

    mutating func removeFirst() {
        let last = entries.removeLast()
        if !entries.isEmpty { sink(last, from: 0) }
    }

    mutating func removeAll(where isRemoved: (UInt64) -> Bool) {
        entries.removeAll { isRemoved($0.id) }
        for index in (0..<entries.count / 2).reversed() { sink(entries[index], from: index) }
    }

    /// Puts an entry at an index, or below it in the place of earlier ones.
    private mutating func sink(_ entry: Entry, from index: Int) {
        var index = index
        while true {
            var child = 2 * index + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].deadline < entries[child].deadline { child += 1 }
            guard entries[child].deadline < entry.deadline else { break }
            entries[index] = entries[child]
            index = child
        }
        entries[index] = entry
    }
}
