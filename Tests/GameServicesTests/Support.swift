// Helpers that the tests of the services share.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices

@Suite("GameServices", .serialized)
enum GameServicesTests {}

/// Returns the error that `body` throws, if it is a `GameServiceError`.
func errorOf(_ body: () async throws -> Void) async -> GameServiceError? {
    do {
        try await body()
        return nil
    } catch { return error as? GameServiceError }
}
