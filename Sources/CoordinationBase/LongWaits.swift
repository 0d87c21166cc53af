// Reports of calls that wait for long.
//
// One task looks at all calls of a runner every few seconds, so that a call costs nothing for it: the order of the
// calls' ids says how long each has waited.

/// The calls that are reported: each after 5 to 10 s, after about a minute, and then every 10 min.
struct LongWaitSchedule {
    static let interval = Duration.seconds(5)

    private static let minute = 12
    private static let tenMinutes = 120

    private var round = 0
    /// The largest id at the end of each round, of the last ten minutes.
    private var newest: [UInt64] = []

    /// Ends a round.
    ///
    /// - Parameter newest: the largest id of a call so far.
    /// - Returns: whether the call with an id is reported now.
    mutating func nextRound(newest id: UInt64) -> (UInt64) -> Bool {
        round += 1
        let marks = newest
        newest.append(max(id, newest.last ?? 0))
        if newest.count > Self.tenMinutes { newest.removeFirst() }
        func began(roundsAgo rounds: Int) -> ClosedRange<UInt64>? {
            guard marks.count >= rounds else { return nil }
            let end = marks[marks.count - rounds]
            let start = marks.count > rounds ? marks[marks.count - rounds - 1] + 1 : 0
            return start <= end ? start...end : nil
        }
        let ranges = [began(roundsAgo: 1), began(roundsAgo: Self.minute)].compactMap { $0 }
        let old = round % Self.tenMinutes == 0 && marks.count >= Self.tenMinutes - 1 ? marks[0] : nil
        return { id in ranges.contains { $0.contains(id) } || old.map { id <= $0 } ?? false }
    }
}

extension WaiterRunner {
    /// Reports calls that wait for long, until there are no calls.
    @usableFromInline
    func watchLongWaits() {
        runner.longWaits = Task {
            var schedule = LongWaitSchedule()
            while !runner.operations.isEmpty {
                try? await clock.sleep(LongWaitSchedule.interval)
                if Task.isCancelled { return }
                let isDue = schedule.nextRound(newest: runner.operations.keys.max() ?? 0)
                let due = runner.operations.values.filter { isDue($0.id) }
                if !due.isEmpty { reportLongWaits(due.sorted { $0.id < $1.id }) }
            }
            runner.longWaits = nil
        }
    }
}
