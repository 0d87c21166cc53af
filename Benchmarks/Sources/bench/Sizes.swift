/// How much is done for each figure.
struct Sizes {
    var handoffs: Int
    var pushes: Int
    var fanOuts: Int
    /// Locks and unlocks of one task; of many tasks together.
    var pairs: Int
    var manyPairs: Int
    /// Requests of redis-benchmark for each script of a pair.
    var requests: Int
    var waiters: Int
    /// Seconds that processes contend for one mutex.
    var contention: Double
    /// How often an operation is done in a crowd, and how large the crowds are.
    var crowdRounds: Int
    var crowds: [Int]
    /// Rounds of a barrier, what each of its processes looks at, and deaths of leaders.
    var rounds: Int
    var looks: Int
    var failovers: Int
    /// Sends of all tasks together, to one mailbox each.
    var sends: Int
    var listeners: Int
    /// Messages that one reader reads; messages in Redis whose memory is measured.
    var messages: Int
    var storedMessages: Int

    static let full = Sizes(
        handoffs: 20_000, pushes: 640_000, fanOuts: 100, pairs: 20_000, manyPairs: 128_000, requests: 10_000,
        waiters: 10_000, contention: 3, crowdRounds: 5000, crowds: [10, 1000, 100_000],
        rounds: 3000, looks: 400, failovers: 3,
        sends: 128_000, listeners: 100_000, messages: 200_000, storedMessages: 1_000_000)

    static let quick = Sizes(
        handoffs: 2000, pushes: 64_000, fanOuts: 10, pairs: 2000, manyPairs: 12_800, requests: 5000, waiters: 1000,
        contention: 0.5, crowdRounds: 500, crowds: [10, 1000, 10_000], rounds: 300, looks: 40,
        failovers: 1, sends: 12_800, listeners: 10_000,
        messages: 20_000,
        storedMessages: 100_000)
}
