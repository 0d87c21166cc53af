// What a caller waits for.
import Hiredis

/// A request for permits of a resource, or for a place at one. A class, because several tables refer to it for as long as the
/// caller waits.
final class AcquireRequest: Sendable {
    /// How the caller takes part.
    enum Way: Sendable {
        /// Acquires permits.
        case acquire
        /// Arrives at a barrier, phaser or exchanger, and waits for the other parties.
        case arrive
        /// Registers as one more party of a phaser or participant of a latch. There is nothing to wait for.
        case register
    }

    /// What happens to the permits.
    enum Mode: Sendable {
        /// They are gone.
        case consume
        /// They come back with the lease's release, at the latest with the end of the session.
        case lease
        /// A group holds one permit together, until its last member releases.
        case group

        /// As engine_acquire.lua takes it.
        var argument: RedisArgument {
            switch self {
            case .consume: "c"
            case .lease: "l"
            case .group: "t"
            }
        }
    }

    /// What few requests have. One reference, so that the others do not pay for it.
    indirect enum Detail: Sendable {
        /// The group that holds one permit together.
        case group(String)
        /// What the caller brings to an exchanger.
        case brings([UInt8])
        /// The claim to release as soon as this one is queued or granted: a condition's mutex.
        case releases(UInt64)
    }

    let resource: Resource
    let way: Way
    let count: Int
    let mode: Mode
    /// Whether the request waits in the queue when there are not enough permits.
    let queues: Bool
    /// Whether it comes before all requests that are not preferred, and does not wait for them.
    let isPreferred: Bool
    /// Whether the wait fails with the session, instead of queueing again in the next one.
    let failsOnLoss: Bool
    let detail: Detail?

    init(
        resource: Resource, way: Way = .acquire, count: Int = 1, mode: Mode = .consume, queues: Bool = true,
        isPreferred: Bool = false, failsOnLoss: Bool = false, detail: Detail? = nil
    ) {
        (self.resource, self.way, self.count, self.mode, self.queues) = (resource, way, count, mode, queues)
        (self.isPreferred, self.failsOnLoss, self.detail) = (isPreferred, failsOnLoss, detail)
    }

    /// The same request, to be granted immediately or not at all.
    var withoutQueueing: AcquireRequest {
        AcquireRequest(
            resource: resource, way: way, count: count, mode: mode, queues: false, isPreferred: isPreferred,
            failsOnLoss: failsOnLoss, detail: detail)
    }

    /// As engine_acquire.lua, engine_arrive.lua and engine_register.lua take it, after the resource.
    var arguments: [RedisArgument] {
        switch way {
        case .register: return []
        case .arrive:
            if case .brings(let bytes)? = detail { return [.bytes(bytes)] }
            return []
        case .acquire:
            let tail: [RedisArgument] = [.integer(count), mode.argument, queues ? "0" : "1"]
            if case .group(let group)? = detail { return tail + [isPreferred ? "0" : "1", .string(group)] }
            return tail + (isPreferred ? ["0"] : [])
        }
    }
}
