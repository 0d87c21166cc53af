import Hiredis

/// The executor of the measured task.
enum Placement: String, CaseIterable, Sendable {
    /// The event loop of the client's connections.
    case pinned
    /// Swift's global executor.
    case global

    var title: String {
        switch self {
        case .pinned: "task on the client's executor"
        case .global: "task on the global executor"
        }
    }

    func run<Result: Sendable>(
        _ redis: RedisClient, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        switch self {
        case .pinned: try await withTaskExecutorPreference(redis.executor) { try await body() }
        case .global: try await Task.detached { try await body() }.value
        }
    }
}
