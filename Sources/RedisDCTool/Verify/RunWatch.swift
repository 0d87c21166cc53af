// The display of `redisdc verify` while it runs.
import CommandLineTool
import Foundation
import Synchronization
import Verification

/// Reads the records of a run while they are written, and shows what happens.
struct RunWatch {
    /// How often the state is printed when standard error is not a terminal, in seconds.
    private static let interval = 10.0

    let progress = Progress()
    private let showsText: Bool
    private let isTerminal = StandardError.isTerminal
    private let start = ContinuousClock.now
    private var tail: HistoryTail
    private var statistics = Statistics()
    private var lastShown = 0.0
    private var lastOperations = 0
    /// The processes that have begun to work.
    private(set) var started: Set<Int> = []
    /// The semaphores for signals that were used.
    private(set) var tokens: Set<String> = []

    init(folder: String, showsText: Bool) {
        tail = HistoryTail(folder: folder)
        self.showsText = showsText
    }

    var events: [Event] { tail.events }

    /// Reads what is new.
    mutating func read() {
        for event in tail.read() {
            statistics.add(event)
            if event.kind == .started { started.insert(event.process) }
            if event.kind == .call, event.verb == .signal || event.verb == .wait, let name = event.resource {
                tokens.insert(name)
            }
        }
        progress.set(statistics.operations)
    }

    /// Shows the state: redraws a line of a terminal every second, and prints a line to anything else now and then.
    mutating func show() {
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        guard showsText, seconds - lastShown >= (isTerminal ? 1 : Self.interval) else { return }
        let rate = Int(Double(statistics.operations - lastOperations) / (seconds - lastShown))
        (lastShown, lastOperations) = (seconds, statistics.operations)
        let text =
            "\(Int(seconds)) s: \(rate) operations/s, \(statistics.failovers) failovers, longest without service "
            + "\(statistics.longestWithoutService) s, \(statistics.announcements) losses announced"
        write(isTerminal ? "\r\(text)\u{1B}[K" : text + "\n")
    }

    /// Ends the line of a terminal.
    func finish() { if showsText, isTerminal { write("\r\u{1B}[K") } }

    /// Standard output has the verdict alone.
    private func write(_ text: String) { StandardError.write(text) }
}

/// The number of operations that have succeeded so far, and whether the run is about to end.
final class Progress: Sendable {
    private let operations = Atomic<Int>(0)
    private let isStopped = Atomic<Bool>(false)

    func set(_ count: Int) { operations.store(count, ordering: .releasing) }
    func stop() { isStopped.store(true, ordering: .releasing) }
    var isOver: Bool { isStopped.load(ordering: .acquiring) }

    /// Waits until this many more operations have succeeded, or the run is about to end.
    ///
    /// - Returns: whether they have, within the limit.
    func wait(for count: Int, within limit: Duration) async throws -> Bool {
        let start = operations.load(ordering: .acquiring)
        let end = ContinuousClock.now + limit
        while operations.load(ordering: .acquiring) < start + count, !isOver {
            if ContinuousClock.now >= end { return false }
            try await Task.sleep(for: .milliseconds(50))
        }
        return true
    }
}
