// The recorded calls of several processes, read from the files of HistoryRecorder.
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
        /// Of a release: the call that acquired the permits.
        var claim: Int
        var called: UInt64
        /// The time at which the call timed out or was cancelled.
        var gaveUp: UInt64?
        /// `nil` if the process was killed before the call returned.
        var returned: UInt64?
        var outcome = HistoryRecorder.Outcome.unknown
        var fence: UInt64 = 0
        /// The value that a latch or barrier returned.
        var value: Int?
        /// The last moment at which the lease was observed as held.
        var lastHeld: UInt64?

        var takes: Bool { leases || verb == .wait || verb == .tryWait }
        var leases: Bool { verb == .take || verb == .tryTake }
        var queues: Bool { verb == .take || verb == .wait }
    }

    /// The process and the number of a call.
    struct Key: Hashable {
        var process: Int
        var id: Int
    }

    private(set) var calls: [Call] = []
    private(set) var index: [Key: Int] = [:]
    /// The time of each process's first session loss, or of the last record of a killed process.
    private(set) var losses: [Int: UInt64] = [:]

    init() {}

    init(files: [String]) throws {
        for file in files { add(try String(contentsOfFile: file, encoding: .utf8)) }
    }

    /// Adds the records of one process.
    mutating func add(_ text: String) {
        var latest: [Int: UInt64] = [:]
        var gaveUp: [Key: UInt64] = [:]
        // The last line of a killed process may be incomplete.
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
                // The call was cancelled before it began.
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
