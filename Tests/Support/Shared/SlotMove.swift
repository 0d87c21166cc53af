public import RedisDCTesting

/// A way to move slots of a cluster.
public enum SlotMove: Sendable {
    /// Key by key, with `MIGRATE`: every server can do that.
    case classic
    /// All keys at once, with `CLUSTER MIGRATESLOTS`: tests need the command `cluster|migrateslots`.
    case atomic
}

extension LocalCluster {
    /// Moves slots with their keys to another master while clients use them.
    public func move(slots: [Int], to target: LocalRedis, by way: SlotMove) async throws {
        switch way {
        case .classic: try await move(slots: slots, to: target)
        case .atomic: try await moveAtomically(slots: slots, to: target)
        }
    }
}
