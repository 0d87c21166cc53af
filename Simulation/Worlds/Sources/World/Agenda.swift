// The events that will happen in a world, in the order of its time.
import HeapModule

/// A microsecond of the world's time. It begins at 0.
typealias Time = Int64

/// The events that will happen, the earliest first; at one time in the order in which they were added.
struct Agenda {
    private struct Entry: Comparable {
        var at: Time
        var number: UInt64
        var event: (World) -> Void

        static func < (one: Entry, other: Entry) -> Bool {
            one.at == other.at ? one.number < other.number : one.at < other.at
        }

        static func == (one: Entry, other: Entry) -> Bool { one.number == other.number }
    }

    private var entries = Heap<Entry>()
    private var lastNumber: UInt64 = 0

    /// The time of the first event.
    var next: Time? { entries.min?.at }

    mutating func add(at time: Time, _ event: @escaping (World) -> Void) {
        lastNumber += 1
        entries.insert(Entry(at: time, number: lastNumber, event: event))
    }

    /// Removes and returns the first event.
    mutating func take() -> (at: Time, event: (World) -> Void)? {
        entries.popMin().map { ($0.at, $0.event) }
    }
}
