// A process of the tests' own: does one job with a semaphore, and says in one line what it did.
import Foundation
import Hiredis
import RedisDC

@main
struct Worker {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 3 else { fatalError("worker JOB URL NAME …") }
        let (job, url, name) = (words[0], words[1], words[2])
        try await withRedisClient(url: url) { redis in
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
            default: fatalError("unknown job \(job)")
            }
        }
    }
}
