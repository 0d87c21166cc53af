// The size of a world, what its tasks do, and what goes wrong in it.

extension World {
    /// What happens in a world.
    public struct Plan: Sendable, Codable, Equatable {
        /// The number of processes at the beginning. One that dies is replaced.
        public var processes = 4
        /// The number of tasks of each process.
        public var tasks = 3
        /// How long tasks begin new operations, in seconds.
        public var seconds = 60
        /// The number of resources of each kind.
        public var resources = 2
        /// The families of primitives in use.
        public var uses: [String] = World.families
        /// The longest pause between two operations of a task, in microseconds.
        public var pause: Int64 = 200_000
        /// How long a lease is kept at most, in microseconds.
        public var hold: Int64 = 3_000_000
        /// Whether tasks change their minds soon: half of the cancels come within 3 ms.
        public var isHasty = false
        /// The TTLs of processes, in seconds, of which each draws one.
        public var ttls = [6]
        /// Every so many scripts, the changes of one are checked.
        public var ledgerInterval = 4
        /// The faults.
        public var faults = Faults()
        /// The part that uses mailboxes.
        public var mail = MailPlan()
        /// The part that uses services, if any.
        public var services: ServicePlan?

        /// Creates a plan.
        public init() {}

        /// Draws a plan: most worlds are small, and use few families, so that much happens to each resource.
        public init(seed: UInt64) {
            var random = Random(seed: ~seed)
            processes = Int.random(in: 2...4, using: &random)
            tasks = Int.random(in: 1...4, using: &random)
            resources = Int.random(in: 1...2, using: &random)
            let count = random.isOne(in: 5) ? World.families.count : Int.random(in: 1...3, using: &random)
            uses = Array(World.families.shuffled(using: &random).prefix(count))
            pause = [20_000, 200_000, 800_000].randomElement(using: &random)!
            hold = [20_000, 500_000, 3_000_000].randomElement(using: &random)!
            ttls = [[2], [6], [2, 6], [3, 4, 9]].randomElement(using: &random)!
            // A pause is a quarter of the longest one on average.
            let perSecond = 1_000_000 * processes * tasks / Int(pause / 4 + 2000)
            seconds = min(60, max(6, 3000 / perSecond))
            let isCalm = random.isOne(in: 4)
            faults = isCalm ? .deaths : Faults(&random)
            if random.isOne(in: 3) {
                mail.tasks = Int.random(in: 1...2, using: &random)
                mail.partitions = Int.random(in: 1...2, using: &random)
                mail.devices = Int.random(in: 2...3, using: &random)
                if random.isOne(in: 2) { tasks = 0 }
            }
            if !isCalm, random.isOne(in: mail.tasks > 0 ? 2 : 4) {
                faults.promotions = Int.random(in: 2...8, using: &random)
            }
            if !isCalm, random.isOne(in: 3) { faults.lostWakeUps = [5, 40].randomElement(using: &random)! }
            if !isCalm, random.isOne(in: 6) { faults.clockSteps = Int.random(in: 2...6, using: &random) }
            if !isCalm, random.isOne(in: 5) { faults.strangeMessages = [6, 60].randomElement(using: &random)! }
            if !isCalm { faults.unknownScripts = 1 }
            if !isCalm, random.isOne(in: 3) {
                faults.lateReplies = [1, 5, 50].randomElement(using: &random)!
            }
            if !isCalm, random.isOne(in: 4) { faults.longestLag = 300 }
            if !isCalm, random.isOne(in: 4) {
                (isHasty, pause, hold, seconds) = (true, 1000, 1000, 3)
                if faults.promotions > 0 { faults.promotions = 100 }
            }
            if random.isOne(in: 4) {
                services = ServicePlan(&random)
                if random.isOne(in: 2) { (tasks, mail.tasks) = (0, 0) }
            }
        }
    }

    /// The names of all families of primitives.
    public static var families: [String] { Use.all.map(\.name) }
}
