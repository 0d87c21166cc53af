// What several processes wrote down, put together: see HistoryRecorder.
import Foundation
import TestHistory

struct History {
    struct Call {
        var process: Int
        var id: Int
        var task: Int
        var verb: HistoryRecorder.Verb
        var resource: String
        var count: Int
        /// Of a release: the call that took.
        var claim: Int
        var called: UInt64
        /// When the caller gave up, by its timeout or by being cancelled.
        var gaveUp: UInt64?
        /// Not there when the process was killed before.
        var returned: UInt64?
        var outcome = HistoryRecorder.Outcome.unknown
        var fence: UInt64 = 0
        /// What a latch or barrier told it.
        var value: Int?
        /// The last moment at which it was seen to be held.
        var lastHeld: UInt64?

        var takes: Bool { leases || verb == .wait || verb == .tryWait }
        var leases: Bool { verb == .take || verb == .tryTake }
        var queues: Bool { verb == .take || verb == .wait }
    }

    /// A call, by its process and its number.
    struct Key: Hashable {
        var process: Int
        var id: Int
    }

    private(set) var calls: [Call] = []
    private(set) var index: [Key: Int] = [:]
    /// When a process lost a session, or the last moment of one that was killed.
    private(set) var losses: [Int: UInt64] = [:]

    init() {}

    init(files: [String]) throws {
        for file in files { add(try String(contentsOfFile: file, encoding: .utf8)) }
    }

    /// - Parameter text: what one process wrote.
    mutating func add(_ text: String) {
        var latest: [Int: UInt64] = [:]
        var gaveUp: [Key: UInt64] = [:]
        // A killed process may have left half a line behind.
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            let words = line.split(separator: " ")
            let (process, id, time) = (Int(words[1])!, Int(words[2])!, UInt64(words[3])!)
            let key = Key(process: process, id: id)
            latest[process] = time
            if words[0] == "call" {
                index[key] = calls.count
                calls.append(
                    Call(
                        process: process, id: id, task: Int(words[4])!, verb: .init(rawValue: String(words[5]))!,
                        resource: String(words[6]), count: Int(words[7])!, claim: Int(words[8])!, called: time,
                        gaveUp: gaveUp[key] ?? UInt64(words[9]).map { time + $0 }))
                continue
            }
            guard words[0] != "lost" else {
                losses[process] = min(losses[process] ?? time, time)
                continue
            }
            guard let place = index[key] else {
                // It was cancelled before it began.
                gaveUp[key] = time
                continue
            }
            switch words[0] {
            case "back":
                calls[place].returned = time
                calls[place].outcome = .init(rawValue: String(words[4]))!
                calls[place].fence = UInt64(words[5])!
                calls[place].value = words.count > 6 ? Int(words[6])! : nil
            case "cancel": calls[place].gaveUp = time
            case "held": calls[place].lastHeld = time
            default: fatalError("unknown line \(line)")
            }
        }
        for (process, time) in latest where calls.contains(where: { $0.process == process && $0.returned == nil }) {
            losses[process] = min(losses[process] ?? time, time)
        }
    }

    var resources: [String] { Set(calls.map(\.resource)).sorted() }
}
