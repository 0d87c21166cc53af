// The worker process of the services' tests: performs one job.
import Foundation
import Hiredis

@main
struct ServicesWorker {
    static func main() async throws {
        discardLogs()
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 3 else { fatalError("usage: services-worker JOB URL NAME [ARGUMENTS]") }
        let (job, url, name) = (words[0], words[1], words[2])
        // All tests run concurrently, so replies can be slow on a small machine.
        var patient = try RedisConfiguration(url: url)
        patient.commandTimeout = .seconds(120)
        try await withRedisClient(patient) { redis in
            switch job {
            case "board-submit": try await BoardSubmits(redis: redis, name: name).run()
            case "match-node":
                let node = MatchNode(redis: redis, name: name, size: Int(words[3])!, tickets: Int(words[4])!)
                try await node.run()
            case "presence-serve":
                let server = PresenceServer(redis: redis, bucket: name, clients: Int(words[3])!)
                try await server.serve(ttl: .milliseconds(Int(words[4])!))
            default: fatalError("cannot run: unknown job \"\(job)\"")
            }
        }
    }
}
