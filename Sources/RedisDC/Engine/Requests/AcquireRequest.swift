// A caller's request for permits.
import Hiredis

/// A request for permits of a resource, or for a place at a barrier, phaser, exchanger or latch.
///
/// A class, because several collections refer to it while the caller waits.
final class AcquireRequest: Sendable {
    /// The caller's action at the resource.
    enum Action: Sendable {
        /// Acquires permits.
        case acquire
        /// Arrives at a barrier, phaser or exchanger, and waits for the other parties.
        case arrive
        /// Registers as one more party of a phaser or participant of a latch. This never waits.
        case register
    }

    /// The use of the permits after the grant.
    enum Mode: Sendable {
        /// They are consumed.
        case consume
        /// They return when the lease is released, at the latest when the session ends.
        case lease
        /// A group holds one permit together, until its last member releases.
        case group

        /// The argument of engine_acquire.lua.
        var argument: RedisArgument {
            switch self {
            case .consume: "c"
            case .lease: "l"
            case .group: "t"
            }
        }
    }

    /// A property that few requests have. One reference, so that all others need little memory for it.
    indirect enum Detail: Sendable {
        /// The group that holds one permit together.
        case group(String)
        /// The bytes that the caller brings to an exchanger.
        case brings([UInt8])
        /// The claim to release as soon as this one is queued or granted: a condition's mutex.
        case releases(UInt64)
    }

    let resource: Resource
    let action: Action
    let count: Int
    let mode: Mode
    /// Whether the request waits in the queue when there are not enough permits.
    let mayQueue: Bool
    /// Whether it precedes all requests that are not preferred, and does not queue behind them.
    let isPreferred: Bool
    /// Whether the wait fails with the session, instead of queueing again in the next one.
    let failsOnLoss: Bool
    let detail: Detail?

    init(
        resource: Resource, action: Action = .acquire, count: Int = 1, mode: Mode = .consume, mayQueue: Bool = true,
        isPreferred: Bool = false, failsOnLoss: Bool = false, detail: Detail? = nil
    ) {
        (self.resource, self.action, self.count, self.mode, self.mayQueue) = (resource, action, count, mode, mayQueue)
        (self.isPreferred, self.failsOnLoss, self.detail) = (isPreferred, failsOnLoss, detail)
    }

    /// The same request, which is granted immediately or not at all.
    var withoutQueueing: AcquireRequest {
        AcquireRequest(
            resource: resource, action: action, count: count, mode: mode, mayQueue: false, isPreferred: isPreferred,
            failsOnLoss: failsOnLoss, detail: detail)
    }

    /// The request in error messages: a verb and the resource, such as `pass latch "start"`.
    var purpose: String {
        switch resource.kind {
        case .condition: "wait for \(resource)"
        case .latch, .turnstile, .barrier, .phaser, .exchanger: "pass \(resource)"
        case .semaphore, .mutex, .readWriteLock, .boundedBuffer, .bufferItems: "acquire \(resource)"
        }
    }

    /// The arguments of engine_acquire.lua, engine_arrive.lua or engine_register.lua, after those of the resource.
    var arguments: [RedisArgument] {
        switch action {
        case .register: return []
        case .arrive:
            if case .brings(let bytes)? = detail { return [.bytes(bytes)] }
            return []
        case .acquire:
            let tail: [RedisArgument] = [.integer(count), mode.argument, mayQueue ? "0" : "1"]
            if case .group(let group)? = detail { return tail + [isPreferred ? "0" : "1", .string(group)] }
            return tail + (isPreferred ? ["0"] : [])
        }
    }
}
