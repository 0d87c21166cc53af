// The operations that the engine requests from Redis.
import Hiredis

/// An operation of the engine. Each is carried out by one script.
enum Operation: Sendable {
    /// Acquires permits, or waits for them.
    case claim(AcquireRequest)
    /// Ends a claim in any state: one of this session, one of an ended session (`owner`), or, with `force`, any.
    case release(name: String, claim: UInt64, owner: String? = nil, force: Bool = false)
    /// Removes a claim from the queue, unless it has been granted.
    case leave(name: String, claim: UInt64)
    /// Adds permits.
    case signal(Resource, count: Int)
    case create(Resource)
    case resize(Resource, permits: Int)
    /// Opens a turnstile for all, or locks it.
    case setTurnstile(Resource, isOpen: Bool)
    /// Counts a latch down, once for each id.
    case countDown(Resource, id: String?)
    /// Releases all but `keep` of a lease's permits.
    case reduce(name: String, claim: UInt64, keep: Int)
    /// Reads the data of a lease: an item, or the values that all parties of a meeting have brought.
    case read(name: String, claim: UInt64)
    /// Turns a lease of one resource into a permit of another.
    case pass(Resource, claim: UInt64, from: String, item: [UInt8]?)
    /// Grants free permits to waiters that an earlier script has left over. With an empty name, only carries the
    /// request's confirmations.
    case give(name: String)
    case destroy(Resource)
    case heartbeat
    /// Lists the session's claims.
    ///
    /// - Parameter after: the cursor of the page before; empty for the first page.
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

    /// Whether the operation's script may leave waiters for ``give(name:)``.
    var mayLeaveWaiters: Bool {
        switch self {
        case .release, .leave, .give, .destroy, .signal, .resize, .setTurnstile, .countDown, .reduce, .pass: true
        case .claim, .create, .read, .heartbeat, .reconcile: false
        }
    }

    var script: RedisScript {
        switch self {
        case .claim(let acquire):
            switch acquire.action {
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
