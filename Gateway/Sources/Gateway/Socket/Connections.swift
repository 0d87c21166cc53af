import NIOConcurrencyHelpers
import NIOCore

/// Counts the open connections of this node, and limits them in all and from one address.
final class Connections: Sendable {
    private struct State {
        var count = 0
        var ofAddress: [String: Int] = [:]
    }

    private let max: Int
    private let maxOfAddress: Int?
    private let state = NIOLockedValueBox(State())

    /// - Parameter maxOfAddress: `nil` for no limit.
    init(max: Int, maxOfAddress: Int?) { (self.max, self.maxOfAddress) = (max, maxOfAddress) }

    var count: Int { state.withLockedValue { $0.count } }

    /// Counts a connection until it is closed.
    ///
    /// - Returns: the limit if it was reached. The connection does not count then.
    func add(_ channel: any Channel) -> Limit? {
        let address = Gateway.subscriber(of: channel.remoteAddress?.ipAddress ?? "")
        let limit = state.withLockedValue { state -> Limit? in
            guard state.count < max else { return .connections }
            let count = state.ofAddress[address] ?? 0
            if let maxOfAddress, count >= maxOfAddress { return .connectionsOfAddress }
            state.count += 1
            state.ofAddress[address] = count + 1
            return nil
        }
        guard limit == nil else { return limit }
        channel.closeFuture.whenComplete { _ in
            self.state.withLockedValue { state in
                state.count -= 1
                let rest = (state.ofAddress[address] ?? 1) - 1
                state.ofAddress[address] = rest > 0 ? rest : nil
            }
        }
        return nil
    }
}
