import NIOConcurrencyHelpers

/// The ports of one server, also while it is down: no server that this process starts meanwhile takes
/// them. They are free again when this object is released.
final class PortReservation: Sendable {
    private static let reserved = NIOLockedValueBox<Set<Int>>([])

    private let ports: Set<Int>

    /// - Returns: `nil` if one of the ports belongs to another server.
    init?(_ ports: Set<Int>) {
        let isFree = Self.reserved.withLockedValue { reserved in
            guard reserved.isDisjoint(with: ports) else { return false }
            reserved.formUnion(ports)
            return true
        }
        guard isFree else { return nil }
        self.ports = ports
    }

    deinit {
        Self.reserved.withLockedValue { $0.subtract(self.ports) }
    }
}
