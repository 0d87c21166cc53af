// What the engine can ask of Redis.
import Hiredis

/// One operation of the engine: each is one script.
enum Operation: Sendable {
    /// Acquires permits, or waits for them.
    case claim(AcquireRequest)
    /// Ends a claim in whatever state it is: one of this session, one of a dead session, or, with `force`, any.
    case release(name: String, claim: UInt64, owner: String? = nil, force: Bool = false)
    /// Removes a claim from the queue, unless it has been granted.
    case leave(name: String, claim: UInt64)
    case signal(Resource, count: Int)
    case create(Resource)
    case resize(Resource, permits: Int)
    /// Opens a turnstile for all, or locks it.
    case setTurnstile(Resource, isOpen: Bool)
    /// Counts a latch down, once for each id.
    case countDown(Resource, id: String?)
    /// Releases all but `keep` of a lease's permits.
    case reduce(name: String, claim: UInt64, keep: Int)
    /// Reads what a lease stands for: an item, or what all parties of a meeting have brought.
    case read(name: String, claim: UInt64)
    /// Turns a lease of one resource into a permit of another.
    case pass(Resource, claim: UInt64, from: String, item: [UInt8]?)
    /// Grants what is free to waiters that an earlier script left for later.
    case give(name: String)
    case destroy(Resource)
    case heartbeat
    case reconcile(after: String)
}

extension Operation {
    /// The name of the resource; empty for an operation on the session.
    var name: String {
        switch self {
        case .claim(let acquire): acquire.resource.name
        case .signal(let resource, _), .create(let resource), .resize(let resource, _), .setTurnstile(let resource, _),
            .countDown(let resource, _), .destroy(let resource), .pass(let resource, _, _, _):
            resource.name
        case .release(let name, _, _, _), .leave(let name, _), .reduce(let name, _, _), .read(let name, _),
            .give(let name):
            name
        case .heartbeat, .reconcile: ""
        }
    }

    /// The resource as this operation describes it; `nil` when it only names it.
    var resource: Resource? {
        switch self {
        case .claim(let acquire): acquire.resource
        case .signal(let resource, _), .create(let resource), .resize(let resource, _), .setTurnstile(let resource, _),
            .countDown(let resource, _), .destroy(let resource), .pass(let resource, _, _, _):
            resource
        case .release, .leave, .reduce, .read, .give, .heartbeat, .reconcile: nil
        }
    }

    /// Whether waiters that could be granted something may be left after it, for ``give(name:)``.
    var mayLeaveWaiters: Bool {
        switch self {
        case .release, .leave, .give, .destroy, .signal, .resize, .setTurnstile, .countDown, .reduce, .pass: true
        case .claim, .create, .read, .heartbeat, .reconcile: false
        }
    }

    var script: RedisScript {
        switch self {
        case .claim(let acquire):
            switch acquire.way {
            case .acquire: Scripts.engineAcquire
            case .arrive: Scripts.engineArrive
            case .register: Scripts.engineRegister
            }
        case .release, .leave: Scripts.engineRelease
        case .signal: Scripts.engineSignal
        case .create: Scripts.engineCreate
        case .resize: Scripts.engineResize
        case .setTurnstile: Scripts.engineGate
        case .countDown: Scripts.engineCount
        case .reduce: Scripts.engineReduce
        case .read: Scripts.engineRead
        case .pass: Scripts.enginePass
        case .give: Scripts.engineGive
        case .destroy: Scripts.engineDestroy
        case .heartbeat: Scripts.engineHeartbeat
        case .reconcile: Scripts.engineReconcile
        }
    }
}
