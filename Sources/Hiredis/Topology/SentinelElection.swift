/// The answers of the sentinels to one question, and the master that follows from them.
struct SentinelElection {
    /// The answer of one sentinel.
    struct Answer: Hashable {
        var endpoint: RedisConfiguration.Endpoint
        /// The number of the configuration: each failover gets a higher one.
        var epoch: Int
    }

    /// The number of all sentinels, including those that have not answered.
    let sentinels: Int
    private(set) var answers: [Answer] = []

    init(sentinels: Int) { self.sentinels = sentinels }

    mutating func add(_ answer: Answer) { answers.append(answer) }

    /// The answer with the highest epoch.
    var newest: Answer? { answers.max { $0.epoch < $1.epoch } }

    /// The address that more than half of all sentinels name, with the highest epoch among them.
    var majority: Answer? {
        for answer in answers {
            let same = answers.filter { $0.endpoint == answer.endpoint }
            if same.count > sentinels / 2 { return same.max { $0.epoch < $1.epoch } }
        }
        return nil
    }

    /// The address that a majority names, unless a sentinel knows a newer configuration: then the
    /// others have not heard of the failover yet, and the server that they name is about to be demoted.
    var master: Answer? {
        guard let majority, let newest else { return nil }
        return newest.epoch > majority.epoch && newest.endpoint != majority.endpoint ? nil : majority
    }
}

extension SentinelElection.Answer {
    /// The two questions. The first one has the address that is valid during a failover, too; only
    /// the second one has the epoch.
    static func questions(_ name: String) -> [RedisCommand] {
        [["SENTINEL", "GET-MASTER-ADDR-BY-NAME", .string(name)], ["SENTINEL", "MASTER", .string(name)]]
    }

    /// Reads the replies to the questions; `nil` when the sentinel does not know the name.
    init?(_ replies: [RESPValue]) {
        guard replies.count == 2, let address = replies[0].array, address.count == 2, let host = address[0].string,
            let port = address[1].integer, let fields = replies[1].array,
            let name = fields.firstIndex(where: { $0.string == "config-epoch" }), name + 1 < fields.count,
            let epoch = fields[name + 1].integer
        else { return nil }
        self.init(endpoint: .tcp(host: host, port: port), epoch: epoch)
    }
}
