/// The amount of work behind each figure.
struct Sizes {
    var handoffs: Int
    var pushes: Int
    var fanOuts: Int
    /// Pairs of lock and unlock: `pairs` by one task, `manyPairs` by many tasks together.
    var pairs: Int
    var manyPairs: Int
    /// The number of requests by redis-benchmark for each script of a pair.
    var requests: Int
    var waiters: Int
    /// The duration for which processes contend for one mutex, in seconds.
    var contention: Double
    /// The repetitions of an operation beside a crowd, and the sizes of the crowds.
    var crowdRounds: Int
    var crowds: [Int]
    /// Rounds of a barrier, operations of each process under a lock, and kills of a leader.
    var rounds: Int
    var operations: Int
    var failovers: Int
    /// Moves of a slot with a subscribed channel.
    var moves: Int
    /// Sends to one mailbox, by all tasks together.
    var sends: Int
    var listeners: Int
    /// Messages that one reader drains, and messages whose memory in Redis is measured.
    var messages: Int
    var storedMessages: Int
    /// Jobs that one worker runs, and sends that are due at random times within five seconds.
    var jobs: Int
    var scheduled: Int
    /// Entries of the larger leaderboard, and operations on each one.
    var entries: Int
    var boardOperations: Int
    /// Pairs of rounds with and without a memory for failovers.
    var repairPairs: Int

    static let full = Sizes(
        handoffs: 20_000, pushes: 640_000, fanOuts: 100, pairs: 20_000, manyPairs: 128_000, requests: 10_000,
        waiters: 10_000, contention: 3, crowdRounds: 5000, crowds: [10, 1000, 100_000],
        rounds: 3000, operations: 400, failovers: 3, moves: 20,
        sends: 128_000, listeners: 100_000, messages: 200_000, storedMessages: 1_000_000, jobs: 100_000,
        scheduled: 1000,
        entries: 1_000_000, boardOperations: 64_000,
        repairPairs: 150)

    static let quick = Sizes(
        handoffs: 2000, pushes: 64_000, fanOuts: 10, pairs: 2000, manyPairs: 12_800, requests: 5000, waiters: 1000,
        contention: 0.5, crowdRounds: 500, crowds: [10, 1000, 10_000], rounds: 300, operations: 40,
        failovers: 1, moves: 5, sends: 12_800, listeners: 10_000,
        messages: 20_000, storedMessages: 100_000, jobs: 10_000, scheduled: 100, entries: 100_000,
        boardOperations: 6_400,
        repairPairs: 1)
}
