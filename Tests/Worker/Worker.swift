// The worker process of the tests: performs one job and prints its result in one line.
import Foundation
import Hiredis
import QueueListen
import RedisDC
import TestHistory
import TestKinds
import Verification

@main
struct Worker {
    static func main() async throws {
        discardLogs()
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 3 else { fatalError("usage: redisdc-worker JOB URL NAME [ARGUMENTS]") }
        let (job, url, name) = (words[0], words[1], words[2])
        // All tests run concurrently, so replies can be slow on a small machine.
        var patient = try RedisConfiguration(url: url)
        patient.commandTimeout = .seconds(120)
        try await withRedisClient(patient) { redis in
            if job.hasPrefix("engine-") {
                try await engine(job, redis, name, Array(words.dropFirst(3)))
                return
            }
            if job.hasPrefix("mail-") {
                try await mail(job, redis, notes: name, Array(words.dropFirst(3)))
                return
            }
            let semaphore = try ClassicSemaphore(name, redis: redis)
            switch job {
            case "mix":
                let mix = Mix(semaphore: semaphore, seed: UInt64(words[3])!)
                print(try await mix.run(operations: Int(words[4])!))
            case "create":
                print(try await semaphore.create(permits: Int(words[3])!))
            case "wait":
                try await semaphore.wait()
                _ = try await redis.send("RPUSH", .string(words[3]), .string(words[4]))
            default: fatalError("cannot run: unknown job \"\(job)\"")
            }
        }
    }

    private static func mail(_ job: String, _ redis: RedisClient, notes: String, _ words: [String]) async throws {
        var configuration = PostOfficeConfiguration()
        configuration.partitions = Int(words[0])!
        configuration.takeOverAfter = .milliseconds(500)
        configuration.recheckInterval = .seconds(2)
        configuration.pollInterval = .milliseconds(20)
        let words = Array(words.dropFirst())
        configuration.usesWakeUps = words.last != "without-wake-ups"
        try await withRedisClient(url: notes) { notes in
            try await withPostOffice(redis: redis, configuration: configuration) { office in
                let mix = MailMix(office: office, notes: notes)
                switch job {
                case "mail-send": try await mix.send(seed: UInt64(words[0])!)
                case "mail-work": try await JobMix(office: office, notes: notes).work()
                case "mail-receive": try await mix.receive(words[0], device: words[1], limit: Int(words[2])!)
                default: fatalError("cannot run: unknown job \"\(job)\"")
                }
            }
        }
    }

    private static func engine(_ job: String, _ redis: RedisClient, _ name: String, _ words: [String]) async throws {
        var configuration = CoordinatorConfiguration()
        if job == "engine-crowd" {
            let crowd = Crowd(redis: redis, process: name, sessions: Int(words[0])!, leases: Int(words[1])!)
            return try await crowd.gather(ttl: .seconds(Int(words[2])!))
        }
        // Those that no test kills or stops keep what they hold on a busy machine.
        let isSafe = job == "engine-turns" || job == "engine-part" && words.first == "phases"
        configuration.ttl = isSafe ? .seconds(60) : .seconds(2)
        try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
            switch job {
            case "engine-mix":
                try await EngineMix(coordinator: coordinator, redis: redis, seed: UInt64(words[0])!).run()
            case "engine-part":
                try await Part(coordinator: coordinator, redis: redis, name: name).play(words)
            case "engine-hold":
                // Records that it has entered, holds the lock until it is cancelled, and records the end.
                do {
                    try await coordinator.mutex(name).withLock { lease in
                        _ = try await redis.send("RPUSH", "log", .string("in \(lease.fence)"))
                        while !Task.isCancelled {
                            // Short, but long enough not to occupy a processor core.
                            try? await Task.sleep(for: .milliseconds(5))
                        }
                        let isHeld = lease.isHeld
                        // In a new task, because commands of a cancelled task are not sent.
                        try await Task { _ = try await redis.send("RPUSH", "log", .string("cancelled \(isHeld)")) }
                            .value
                    }
                } catch let error as RedisDCError {
                    _ = try await redis.send("RPUSH", "log", .string("\(error.code)"))
                }
            case "engine-guard":
                let hasGuard = words[0] == "guarded"
                let lease = try await coordinator.mutex(name).lock()
                let stopping = StoppingRedis(target: redis)
                do {
                    if hasGuard {
                        try await lease.guarded(stopping).set("k", to: "late")
                    } else {
                        try lease.check()
                        _ = try await stopping.script(
                            RedisScript("return redis.call('SET', KEYS[1], 'late')"), keys: ["k"], arguments: [],
                            timeout: nil)
                    }
                    print("written, and the lease is \(lease.isHeld ? "held" : "lost")")
                } catch let error as RedisDCError { print(error.code) }
            case "engine-turns":
                // Locks a mutex a number of times, and increments a counter under it without an atomic command.
                for _ in 0..<Int(words[0])! {
                    try await coordinator.mutex(name).withLock { _ in
                        let count = try await redis.send("GET", "count").string.flatMap { Int($0) } ?? 0
                        _ = try await redis.send("SET", "count", .integer(count + 1))
                    }
                }
                // The time by this process's clock.
                print(Date().timeIntervalSince1970)
            case "engine-cohort":
                let mutex = try coordinator.mutex(name, locality: .cohort())
                try await Turns(mutex: mutex, redis: redis, recorder: Recorder(folder: words[0], process: 1))
                    .run(tasks: Int(words[1])!)
            case "engine-kinds":
                let watch = KindWatch(isAlone: false)
                let (seed, steps) = (UInt64(words[0])!, Int(words[1])!)
                try await KindMix(nodes: [coordinator], seed: seed, watch: watch, cancels: true, steps: steps).run()
                print(await watch.faults.joined(separator: "; "))
            case "engine-history":
                let recorder = HistoryRecorder(path: words[0])
                try await HistoryMix(coordinator: coordinator, recorder: recorder, seed: UInt64(words[1])!)
                    .run(tasks: Int(words[2])!, steps: Int(words[3])!)
            default: fatalError("cannot run: unknown job \"\(job)\"")
            }
        }
    }
}

/// Stops the whole process when it is about to send a script, until it gets SIGCONT.
private struct StoppingRedis: ForwardingRedis {
    let target: any Redis

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        // To this thread, which cannot go on for a moment then, as it could if another one took the signal.
        raise(SIGSTOP)
        return try await target.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }
}
