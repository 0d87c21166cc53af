import Hiredis
import QueueListen

/// A worker that can be killed or stopped at any time, and that records in a second Redis server what it does.
struct JobMix {
    let office: PostOffice
    /// A client of the second server, which suffers no faults.
    let notes: RedisClient

    static let mailbox = "jobs"
    /// Writes a text if no job with a higher fence has written for the same subject.
    private static let write = """
        if tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') > tonumber(ARGV[1]) then return 0 end
        redis.call('HSET', KEYS[1], 'fence', ARGV[1])
        redis.call('RPUSH', KEYS[2], ARGV[2])
        return 1
        """

    /// Works until it is ended. A job's text is "KEY NUMBER". One in ten attempts fails, and the last digit of the number
    /// tells which jobs fail for good.
    func work() async throws {
        var configuration = WorkConfiguration()
        configuration.concurrency = 4
        configuration.ttl = .seconds(2)
        configuration.attempts = 1000
        configuration.pause = .milliseconds(5)...(.milliseconds(100))
        try await office.mailbox(Self.mailbox).work(configuration) { [notes] job in
            struct Failure: Error {}
            let words = job.message.text.split(separator: " ").map(String.init)
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...20)))
            if words[1].hasSuffix("9") { throw JobRejection("a job that ends with 9") }
            if Int.random(in: 0...9) == 0 { throw Failure() }
            let isWritten = try await notes.send(
                "EVAL", .string(Self.write), 2, .string("fence \(words[0])"), .string("did \(words[0])"),
                .string("\(job.fence)"), .string(words[1]))
            if isWritten.integer == 0 { _ = try await notes.send("INCR", "stale") }
            _ = try await notes.send("INCR", "runs")
        }
    }
}
