import CommandLineTool
import Hiredis

/// The log of a rendezvous in the server's order, and the verdict on it.
struct History {
    struct Event {
        /// The index of its process.
        var lane: Int
        /// 1 before the meeting, 2 after it.
        var half: Int
        var round: Int
        /// By the server's clock, in microseconds.
        var time: Int
        var name: String
    }

    struct Verdict: Encodable {
        var rounds: Int
        var processes: Int
        /// For each process, whether its first half came before the second half of every other
        /// process in each round.
        var firstHalfBeforeOthersSecond: [Bool]
        var names: [String]

        var isRight: Bool { firstHalfBeforeOthersSecond.allSatisfy { $0 } }

        var sentence: String {
            func word(_ holds: Bool) -> String { holds ? "yes" : "NO" }
            if processes == 2 {
                return "a1 before b2: \(word(firstHalfBeforeOthersSecond[0])), "
                    + "b1 before a2: \(word(firstHalfBeforeOthersSecond[1])), \(rounds) rounds"
            }
            let all = zip(names, firstHalfBeforeOthersSecond).map { "\($0)1: \(word($1))" }.joined(separator: ", ")
            return "each before every other's second half: \(all), \(rounds) rounds"
        }
    }

    let events: [Event]
    let lanes: [String]
    let rounds: Int
    let verdict: Verdict

    /// - Parameter lanes: for each process, the prefix of its events' names.
    /// - Throws: a ``Failure`` if the log is incomplete.
    init(log: RESPValue, lanes: [String], rounds: Int) throws {
        let events = (log.array ?? []).compactMap { entry -> Event? in
            let words = (entry.string ?? "").split(separator: " ")
            guard words.count == 3, let half = words[0].last?.wholeNumberValue,
                let lane = lanes.firstIndex(of: String(words[0].dropLast())),
                let round = Int(words[1]), let time = Int(words[2])
            else { return nil }
            return Event(lane: lane, half: half, round: round, time: time, name: String(words[0]))
        }
        guard events.count == lanes.count * rounds * 2 else {
            throw Failure(
                .software, "the log of the demo has \(events.count) events, expected \(lanes.count * rounds * 2)")
        }
        self.events = events
        self.lanes = lanes
        self.rounds = rounds
        verdict = Verdict(
            rounds: rounds, processes: lanes.count,
            firstHalfBeforeOthersSecond: Self.judge(events, lanes: lanes.count, rounds: rounds), names: lanes)
    }

    private static func judge(_ events: [Event], lanes: Int, rounds: Int) -> [Bool] {
        var position = Array(repeating: Array(repeating: [0, 0], count: rounds + 1), count: lanes)
        for (index, event) in events.enumerated() where (1...rounds).contains(event.round) {
            position[event.lane][event.round][event.half - 1] = index
        }
        return (0..<lanes).map { lane in
            (1...rounds).allSatisfy { round in
                (0..<lanes).allSatisfy { other in
                    other == lane || position[lane][round][0] < position[other][round][1]
                }
            }
        }
    }
}
