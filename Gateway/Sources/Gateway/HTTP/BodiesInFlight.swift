import NIOConcurrencyHelpers
import NIOCore

/// The bodies of requests that are still arriving, and the bytes that the node holds of them.
///
/// Beyond the limit, the connection is closed whose body has held the most memory for the longest time, as the product of
/// both. A body that arrives at a usual speed is soon complete, so that clients that send theirs slowly cannot keep others
/// from sending.
final class BodiesInFlight: Sendable {
    private struct Body {
        var bytes = 0
        let began = NIODeadline.now()
        let channel: any Channel

        func weight(_ now: NIODeadline) -> Double { Double(bytes) * Double((now - began).nanoseconds + 1) }
    }

    private struct State {
        var bodies: [Int: Body] = [:]
        var lastNumber = 0
        var bytes = 0

        /// Takes out the bodies that have cost the most until the others are within a limit.
        mutating func removeHeaviest(downTo maxBytes: Int) -> [any Channel] {
            var channels: [any Channel] = []
            let now = NIODeadline.now()
            while bytes > maxBytes, let heaviest = bodies.max(by: { $0.value.weight(now) < $1.value.weight(now) }) {
                bodies[heaviest.key] = nil
                bytes -= heaviest.value.bytes
                channels.append(heaviest.value.channel)
            }
            return channels
        }
    }

    private let maxBytes: Int
    private let state = NIOLockedValueBox(State())

    init(maxBytes: Int) { self.maxBytes = maxBytes }

    /// The number of bodies that are arriving.
    var count: Int { state.withLockedValue { $0.bodies.count } }

    /// The number of bytes that are held.
    var bytes: Int { state.withLockedValue { $0.bytes } }

    /// Runs a function that receives a body, whose bytes it counts.
    ///
    /// - Parameters:
    ///   - channel: is closed if the bodies exceed the limit and this one has cost the most.
    ///   - receive: calls `count` with the number of bytes of each part.
    func receive<Result>(
        from channel: any Channel, _ receive: (_ count: (Int) -> Void) async throws -> Result
    ) async rethrows -> Result {
        let number = state.withLockedValue { state in
            state.lastNumber += 1
            state.bodies[state.lastNumber] = Body(channel: channel)
            return state.lastNumber
        }
        defer {
            state.withLockedValue { $0.bytes -= $0.bodies.removeValue(forKey: number)?.bytes ?? 0 }
        }
        return try await receive { count in
            let channels = state.withLockedValue { state in
                guard state.bodies[number] != nil else { return [any Channel]() }
                state.bodies[number]?.bytes += count
                state.bytes += count
                return state.removeHeaviest(downTo: maxBytes)
            }
            for channel in channels {
                Limit.bodyBytesInFlight.count()
                channel.close(promise: nil)
            }
        }
    }
}
