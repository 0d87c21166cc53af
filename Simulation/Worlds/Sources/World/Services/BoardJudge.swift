// The judge of leaderboards: each submit counts once in each window, and pages are in order.
import SimulatedRedis

@testable import CoordinationBase
@testable import GameServices

/// Checks that each submit counts once in each window, and how pages are ordered.
///
/// Each score is a power of four, which no other submit for its name has. So the sum of a name says which of its submits
/// have counted, and how often.
final class BoardJudge: FamilyJudge {
    static let (namespace, name) = ("world", "scores")
    /// The number of names that are in use together, and of submits for each.
    private static let (names, places) = (3, 24)

    struct Submit {
        var name: String
        var id: String?
        /// The place of its digit in the sum, written to the base four.
        var place: Int
        var score: Int { 1 << (2 * place) }
        /// The calls under way, and when the first one began, by the server's clock in microseconds.
        var calls = 0
        var begun: Int?
        /// Whether a call may have had an effect that it has not reported.
        var mayHaveRun = false
        /// The result of the last call that succeeded, its time, and the number of losses of data when it began.
        var answer: (placements: [LeaderboardWindow: LeaderboardPlacement], at: Time, losses: Int)?
        /// The clients to which it was confirmed, and when last.
        var holders: [(client: SimulatedClient, at: Time)] = []
        /// Whether it has certainly had no effect.
        var isRefused: Bool { calls == 0 && !mayHaveRun && answer == nil }
    }

    private unowned let world: World
    private var submits: [Submit] = []
    /// The submits for each name, by place.
    private var byName: [String: [Int]] = [:]

    init(_ world: World) { self.world = world }

    // MARK: Submits

    func begins(hasID: Bool) -> Int {
        let number = submits.count
        let round = number / (Self.names * Self.places)
        let name = "name \(round * Self.names + number % Self.names)"
        let place = number / Self.names % Self.places
        submits.append(Submit(name: name, id: hasID ? "submit \(number)" : nil, place: place))
        byName[name, default: []].append(number)
        return number
    }

    /// One of the last submits with an id, which any process may repeat.
    func repeatable(_ random: inout Random) -> Int? {
        submits.indices.suffix(20).filter { submits[$0].id != nil }.randomElement(using: &random)
    }

    func anyName(_ random: inout Random) -> String? { submits.randomElement(using: &random)?.name }

    /// A call begins. Returns the submit.
    func calls(_ number: Int) -> Submit {
        submits[number].calls += 1
        submits[number].begun = submits[number].begun ?? Int(world.servers.master.now)
        return submits[number]
    }

    func fails(_ number: Int, mayHaveRun: Bool) {
        submits[number].calls -= 1
        if mayHaveRun { submits[number].mayHaveRun = true }
    }

    /// - Parameter losses: how often the server had lost data when the call began.
    func returns(_ number: Int, _ answer: LeaderboardSubmission, to client: SimulatedClient, losses: Int) {
        world.judge { $0.hasChecked() }
        submits[number].calls -= 1
        submits[number].holders.removeAll { $0.client === client }
        submits[number].holders.append((client, world.now))
        let submit = submits[number]
        if let earlier = submit.answer, earlier.placements != answer.placements {
            // Each may be of a master of its own.
            let isSame = earlier.losses == world.judge.losses && losses == world.judge.losses
            world.check(!isSame, "\(answer.id) is \(answer.placements), and was \(earlier.placements)")
        }
        if let total = answer.placements[.allTime], (1...total.entryCount).contains(total.rank) {
            world.check(
                total.score & submit.score > 0, "the sum after \(answer.id) is \(total.score) without its score")
        } else {
            world.violation("the answer to \(answer.id) is \(answer.placements)")
        }
        if submit.answer == nil { checkPeriod(answer, since: submit.begun!) }
        if losses >= submit.answer?.losses ?? 0 { submits[number].answer = (answer.placements, world.now, losses) }
    }

    /// A submit counts in the period in which the server has stored it.
    private func checkPeriod(_ answer: LeaderboardSubmission, since begun: Int) {
        let times = [begun, Int(world.servers.master.now)]
        let periods = times.map { ServiceProcess.window.period(at: $0) }
        guard let own = answer.placements[ServiceProcess.window]?.period, world.plan.faults.clockSteps == 0 else {
            return
        }
        let number = own.split(separator: ":").last.flatMap { Int($0) } ?? 0
        let numbers = periods.map { $0.start / 2_000_000 }
        world.check(
            numbers[0] <= number && number <= numbers[1], "\(answer.id) counts in \(own), and came in \(periods)")
    }

    /// Another score was submitted under the id of a submit.
    func misuses(_ number: Int, isRefused: Bool, losses: Int) {
        guard let answer = submits[number].answer, answer.losses == world.judge.losses, losses == answer.losses else {
            return
        }
        world.check(isRefused, "submit \(number) has two scores under its id")
    }

    // MARK: Reads

    func reads(_ page: LeaderboardPage, since begun: Time) {
        let isAllTime = page.period == LeaderboardWindow.allTime.description
        for (index, entry) in page.entries.enumerated() {
            world.check(entry.rank == index + 1, "the entry at \(index + 1) of \(page.period) has rank \(entry.rank)")
            if index > 0 {
                let before = page.entries[index - 1]
                let isOrdered = (entry.score, before.date) < (before.score, entry.date)
                world.check(isOrdered, "in \(page.period), \(before) is before \(entry)")
            }
        }
        world.check(page.entryCount == page.entries.count, "\(page.entryCount) entries are \(page.entries.count)")
        let found = Dictionary(page.entries.map { ($0.name, $0.score) }) { first, _ in first }
        world.check(found.count == page.entries.count, "a name is twice in \(page.period)")
        let names = Set(submits.suffix(2 * Self.names * Self.places).map(\.name)).union(
            isAllTime ? [] : Set(found.keys))
        for name in names.sorted() {
            checkSum(found[name] ?? 0, of: name, in: isAllTime ? nil : page.period, since: begun)
        }
        for name in found.keys where byName[name] == nil { world.violation("nobody has submitted for \(name)") }
    }

    /// - Parameter period: the period of the short window that was read; `nil` for all time.
    func checkSum(_ sum: Int, of name: String, in period: String? = nil, since begun: Time) {
        let numbers = byName[name] ?? []
        world.check(sum >> (2 * numbers.count) == 0, "\(name) has \(sum), and \(numbers.count) submits")
        for number in numbers {
            let submit = submits[number]
            let count = sum >> (2 * submit.place) & 3
            let what = "submit \(number), \(submit.score) for \(name),"
            world.check(count <= 1, "\(what) counts \(count) times in \(period ?? "all")")
            world.check(count == 0 || !submit.isRefused, "\(what) has failed, and counts")
            guard let answer = submit.answer else { continue }
            if answer.losses != world.judge.losses {
                if count == 0, period == nil, isRepaired(submit, before: begun) {
                    world.violation("\(what) does not count any more")
                }
                continue
            }
            let own = answer.placements[ServiceProcess.window]?.period
            if count == 0, answer.at < begun, period == nil || period == own {
                world.violation("\(what) does not count in \(period ?? "all")")
            }
            if count == 1, let period, period != own {
                world.violation("\(what) counts in \(period), and \(own ?? "none") was answered")
            }
        }
    }

    /// Whether the server has lost nothing of a submit since a process to which it was confirmed has compared.
    private func isRepaired(_ submit: Submit, before time: Time) -> Bool {
        submit.holders.contains { client, at in client.hasRepaired(at, before: time) }
    }

    func checkEnd(_ ledger: Ledger) {
        guard let keys = try? ServiceKeys(namespace: Self.namespace, kind: "board", name: Self.name) else { return }
        var server = world.servers.master
        let ranks = server.execute("ZRANGE", Bytes(keys.key("ranks:all-time")), "0", "-1", "WITHSCORES")
        let words = ranks.elements?.compactMap { $0.bytes?.text } ?? []
        var found: [String: Int] = [:]
        for at in stride(from: 0, to: words.count - 1, by: 2) {
            // The member begins with 14 digits of its time, and a better score is a lower one.
            found[String(words[at].dropFirst(14))] = Int(words[at + 1]).map { -$0 }
        }
        for name in byName.keys.sorted() { checkSum(found[name] ?? 0, of: name, since: world.now) }
    }
}
