// The events that will happen in a world, in the order of its time.
import HeapModule

/// A microsecond of the world's time. It begins at 0.
typealias Time = Int64

/// What an event belongs to. The events of one lane happen in their order.
///
/// Only exhaustive exploration needs it: it chooses among the first events of all lanes.
struct Lane: Hashable {
    enum Kind: Int {
        /// A request arrives at the server. The number is the generation of the connection.
        case request
        /// A reply arrives at the process. The number is the generation of the connection.
        case reply
        /// A message of a channel arrives at the process. The number is that of the subscription.
        case message
        /// The process, or a task with this number, goes on.
        case step
        /// It is time for something in the process.
        case timer
    }

    var kind: Kind
    /// The number of the process; -1 for an event of the world.
    var process: Int
    var number = 0

    static let world = Lane(kind: .timer, process: -1)

    static func timer(_ process: SimulatedProcess) -> Lane { Lane(kind: .timer, process: process.number) }

    /// - Parameter number: that of a task; others are negative.
    static func step(_ process: SimulatedProcess, _ number: Int = -1) -> Lane {
        Lane(kind: .step, process: process.number, number: number)
    }
}

/// The events that will happen, the earliest first; at one time in the order in which they were added.
struct Agenda {
    struct Entry: Comparable {
        var at: Time
        var number: UInt64
        var lane: Lane
        /// What the event carries, if the server has made it.
        var content: Int
        /// Whether the event still has an effect.
        var isNeeded: () -> Bool
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

    mutating func add(
        at time: Time, _ lane: Lane = .world, content: Int = 0, isNeeded: @escaping () -> Bool = { true },
        _ event: @escaping (World) -> Void
    ) {
        lastNumber += 1
        entries.insert(
            Entry(at: time, number: lastNumber, lane: lane, content: content, isNeeded: isNeeded, event: event))
    }

    /// Removes and returns the first event.
    mutating func take() -> (at: Time, event: (World) -> Void)? {
        entries.popMin().map { ($0.at, $0.event) }
    }

    // MARK: Exploration

    /// All events that still have an effect, in the order in which they were added.
    mutating func needed() -> [Entry] {
        let needed = entries.unordered.filter { $0.isNeeded() }
        if needed.count < entries.count { entries = Heap(needed) }
        return needed.sorted { $0.number < $1.number }
    }

    /// Removes an event.
    mutating func remove(_ entry: Entry) { entries = Heap(entries.unordered.filter { $0.number != entry.number }) }
}
