import Foundation
import Hiredis
import Hummingbird
import RedisDC

@main
struct Kitchen {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        let redis = try RedisClient(url: environment["REDIS_URL"] ?? "redis://127.0.0.1:6379")
        let coordinator = try Coordinator(redis: redis)

        let router = Router()
        router.post("/cook") { _, _ in
            try await coordinator.mutex("kitchen").withLock(timeout: .seconds(10)) { lease in
                try await Task.sleep(for: .seconds(3))
                return "cooked with fence \(lease.fence)\n"
            }
        }
        let port = environment["PORT"].flatMap { Int($0) } ?? 8080
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            services: [redis, coordinator])
        try await application.runService()
    }
}
