import Hiredis
import TestRandom
import TestSupport

@testable import RedisDC

/// Feeds events to a state machine and describes its actions in words.
// swift-format-ignore: AmbiguousTrailingClosureOverload
struct MachineRun {
    static let resource = Resource(name: "x", kind: .mutex, permits: 1)

    private var machine: EngineStateMachine
    private var actions: [Action] = []
    private(set) var requests: [UInt64: EngineRequest] = [:]
    private(set) var unanswered: [UInt64: EngineRequest] = [:]
    /// The number of the connection on which each request was sent last.
    private var connections: [UInt64: UInt64] = [:]
    private(set) var lastNumber: UInt64 = 0
    private var wantsListen = false
    private var wantsJoin = false
    /// The notices that Redis has counted.
    private var notices: UInt64 = 0
    var now = Duration.zero

    init() {
        nonisolated(unsafe) var count = 0
        machine = EngineStateMachine(settings: EngineStateMachine.Settings()) {
            count += 1
            return SessionLife(id: "session\(count)", now: { .zero })
        }
    }

    /// - Parameter next: when Redis asks for the first heartbeat.
    static func live(next: Duration? = nil) -> MachineRun {
        var run = MachineRun()
        run.apply { $0.start() }
        run.listening()
        run.joined(next: next)
        _ = run.taken()
        return run
    }

    /// A live session whose claims, numbered from 1, wait in the queue.
    static func waiting(_ count: UInt64 = 1) -> MachineRun {
        var run = live()
        for id in 1...count {
            run.acquire(id)
            run.reply(id, .queued())
        }
        _ = run.taken()
        return run
    }

    /// A live session that has the lease 1, with the fence 7.
    static func holding() -> MachineRun {
        var run = live()
        run.acquire(1)
        run.reply(1, .granted(fence: 7))
        _ = run.taken()
        return run
    }

    // MARK: Events

    /// An action of the machine, for any event: the cases of all its action enums.
    enum Action {
        case subscribe
        case join
        case send(EngineRequest)
        case finish(UInt64, EngineStateMachine.Finish)
        case lose(UInt64, RedisDCError)
        case recall(CohortClaim)
        case event(CoordinatorEvent)
    }

    mutating func apply<Event: MachineAction>(_ event: (inout EngineStateMachine, String, Duration) -> Event) {
        let new = event(&machine, machine.life.id, now).recorded
        for action in new {
            switch action {
            case .send(let request):
                if request.session == machine.life.id {
                    requests[request.number] = request
                    unanswered[request.number] = request
                    connections[request.number] = machine.connection
                    lastNumber = max(lastNumber, request.number)
                }
            case .subscribe: (wantsListen, unanswered) = (true, [:])
            case .join: wantsJoin = true
            case .finish, .lose, .recall, .event: break
            }
        }
        actions += new
    }

    mutating func apply<Event: MachineAction>(_ event: (inout EngineStateMachine) -> Event) {
        apply { machine, _, _ in event(&machine) }
    }

    /// Makes a call whose failure ends the operation with this id.
    mutating func call(
        _ id: UInt64, _ event: (inout EngineStateMachine, Duration) -> EngineStateMachine.CallAction
    ) {
        apply { machine, _, now in CallOf(id: id, action: event(&machine, now)) }
    }

    mutating func listening(isSubscribed: Bool = true) {
        wantsListen = false
        apply { $0.subscriptionChanged($1, isSubscribed: isSubscribed, now: $2) }
    }

    mutating func joined(epoch: String = "epoch", next: Duration? = nil, lastMayHaveExpired: Bool = false) {
        wantsJoin = false
        notices = 0
        apply {
            $0.joined($1, epoch: epoch, next: next, lastMayHaveExpired: lastMayHaveExpired, now: $2)
        }
    }

    /// Handles a new connection for commands.
    mutating func reconnected() { apply { $0.reconnected(now: $2) } }

    /// The numbers of the requests that come before all others on a new connection.
    var first: Set<UInt64> { Set(requests.filter { machine.comesFirst($0.value) }.keys) }

    var isComparing: Bool { machine.isComparing }

    /// Begins the next session if the last one was lost.
    mutating func rejoin() {
        if wantsListen { listening() }
        if wantsJoin { joined() }
    }

    mutating func acquire(_ id: UInt64, mode: Acquire.Mode = .lease, timeout: Duration? = nil) {
        acquire(id, Acquire(resource: Self.resource, mode: mode), timeout: timeout)
    }

    mutating func acquire(_ id: UInt64, _ request: Acquire, timeout: Duration? = nil) {
        let limit = timeout.map { WaitLimit(timeout: $0, deadline: now + $0) }
        call(id) { $0.acquire(id, request, limit: limit, now: $1) }
    }

    mutating func cancel(_ id: UInt64) { apply { $0.abandon(id, RedisDCError(.cancelled, ""), now: $2) } }

    /// Handles a wake-up with these pairs, as Redis sends it: it counts the notices.
    mutating func wakeUp(_ pairs: String) {
        let words = pairs.split(separator: " ")
        notices += UInt64(stride(from: 1, to: words.count, by: 2).count { words[$0] != "try" && words[$0] != "recall" })
        wakeUp(notices: notices, pairs)
    }

    mutating func wakeUp(notices: UInt64, _ pairs: String) {
        apply { $0.wakeUpReceived($1, "\(notices) \(pairs)", now: $2) }
    }

    /// Handles a gap in the wake-ups.
    mutating func gap() { apply { $0.gap($1, now: $2) } }

    /// The arguments of a heartbeat; `nil` if the request with this number is another one.
    func heartbeat(_ number: UInt64) -> (seen: SlotChange?, fence: UInt64, connection: UInt64)? {
        guard let heartbeat = requests[number]?.operation as? Heartbeat else { return nil }
        return (heartbeat.seen, heartbeat.fence, heartbeat.connection)
    }

    mutating func replyToHeartbeat(_ number: UInt64, notices: UInt64) {
        reply(number, .heartbeat(notices: notices, isDataLost: false, .none))
    }

    mutating func reply(_ number: UInt64, _ reply: EngineReply) {
        guard let request = requests[number] else { return }
        unanswered[number] = nil
        let connection = connections[number]!
        apply { $0.reply(request, .success(reply), sentOn: connection, now: $2) }
    }

    /// Handles a lost connection, after which the request is sent again.
    mutating func fail(_ number: UInt64, mayHaveRun: Bool = true) {
        guard let request = requests[number] else { return }
        let connection = connections[number]!
        apply {
            let error = RedisError(.connectionLost, "", mayHaveRun: mayHaveRun)
            return $0.reply(request, .failure(.retry(error)), sentOn: connection, now: $2)
        }
    }

    /// Sends a request on the present connection that has waited for it.
    mutating func sendsAgain(_ number: UInt64) { connections[number] = machine.connection }

    mutating func refuse(_ number: UInt64) { fail(number, RedisDCError(.notPermitted, "")) }

    /// Handles a failure after which the request is not sent again.
    mutating func fail(_ number: UInt64, _ error: RedisDCError) {
        guard let request = requests[number] else { return }
        unanswered[number] = nil
        let connection = connections[number]!
        apply { $0.reply(request, .failure(.fatal(error)), sentOn: connection, now: $2) }
    }

    mutating func advance(_ duration: Duration) {
        now += duration
        apply { $0.tick(now: $2) }
    }

    mutating func answerAtRandom(_ request: EngineRequest, _ generator: inout SplitMix) {
        let answer: EngineReply =
            switch request.operation {
            case is Acquire: Bool.random(using: &generator) ? .queued() : .granted(fence: request.number + 1000)
            case is Heartbeat:
                .heartbeat(
                    notices: UInt64.random(in: 0...3, using: &generator),
                    isDataLost: Int.random(in: 0..<8, using: &generator) == 0, .none)
            case is ListClaims: .page(next: 0, [])
            case is Sweep: .sweep(below: 0, [])
            default: .done(count: 1, more: Int.random(in: 0..<8, using: &generator) == 0)
            }
        reply(request.number, Int.random(in: 0..<20, using: &generator) == 0 ? .lost(isExpired: false) : answer)
    }

    /// The requests of a shutdown, in steps.
    mutating func shutdownRequests() -> [[String]] {
        machine.shutdownRequests().map { step in
            step.map { ($0.operation as? Release).map { "release of \($0.claim)" } ?? "something else" }
        }
    }

    // MARK: Actions

    mutating func takenActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    mutating func taken() -> [String] { takenActions().map(Self.words) }

    private static func words(_ action: Action) -> String {
        switch action {
        case .subscribe: return "subscribe"
        case .join: return "join"
        case .lose(let id, _): return "lose \(id)"
        case .recall: return "recall"
        case .event(.sessionStarted): return "event started"
        case .event(.sessionLost(_, let reason)): return "event lost \(reason == .expired ? "expired" : "dataLost")"
        case .event(.dataLost): return "event dataLost"
        case .event(.repaired(let operations)): return "event repaired \(operations)"
        case .event(.sessionRefused(let error)): return "event refused \(error.code)"
        case .event(.claimSetAside(let id, _)): return "event set aside \(id)"
        case .finish(let id, .success(.granted(let grant))): return "finish \(id) granted \(grant.fence)"
        case .finish(let id, .success): return "finish \(id)"
        case .finish(let id, .failure(let error)):
            return "finish \(id) \(error.code)" + (error.mayHaveRun ? " may have run" : "")
        case .send(let request):
            let number = request.number
            let what: String =
                switch request.operation {
                case is Acquire: "acquire \(number)"
                case let release as Release: "release \(number) of \(release.claim)"
                case let end as End:
                    "\(end.isForced ? "force" : "end") \(number) of \(end.claim.session):\(end.claim.number)"
                case let sweep as Sweep:
                    "sweep \(number) of \(sweep.session)" + (sweep.below.map { " below \($0)" } ?? "")
                case let recheck as Recheck: "recheck \(number) of \(recheck.name)"
                case let confirm as Confirm:
                    "confirm \(number) of " + confirm.claims.map { "\($0.number)" }.joined(separator: ",")
                case let leave as Leave: "leave \(number) of \(leave.claim)"
                case let aside as SetAside: "set aside \(number) of \(aside.claim.session):\(aside.claim.number)"
                case let pass as Pass: "pass \(number) of \(pass.held.number)"
                case is Signal: "signal \(number)"
                case is Settle: "settle \(number)"
                case is Heartbeat: "heartbeat \(number)"
                case is ListClaims: "reconcile \(number)"
                default: "something else"
                }
            return "send \(what)"
        }
    }
}

extension EngineReply.MaintenanceWork {
    static var none: EngineReply.MaintenanceWork { EngineReply.MaintenanceWork(expired: [], names: []) }
}

// MARK: Recording

/// An action enum of the machine, or several actions, as ``MachineRun`` records them.
protocol MachineAction {
    var recorded: [MachineRun.Action] { get }
}

extension Array: MachineAction where Element: MachineAction {
    var recorded: [MachineRun.Action] { flatMap(\.recorded) }
}

extension EngineRequest: MachineAction {
    var recorded: [MachineRun.Action] { [.send(self)] }
}

/// The action that a call leads to, together with the operation that it is about.
private struct CallOf: MachineAction {
    var id: UInt64
    var action: EngineStateMachine.CallAction

    var recorded: [MachineRun.Action] {
        switch action {
        case .none: []
        case .send(let request): [.send(request)]
        case .fail(let error): [.finish(id, .failure(error))]
        case .sessionEnded(let end, let failure):
            end.recorded + (failure.map { [.finish(id, .failure($0))] } ?? [])
        }
    }
}

extension EngineStateMachine.StartAction: MachineAction {
    var recorded: [MachineRun.Action] { if case .subscribe = self { [.subscribe] } else { [] } }
}

extension EngineStateMachine.SubscriptionAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .none: []
        case .join: [.join]
        case .send(let request): [.send(request)]
        }
    }
}

extension EngineStateMachine.JoinAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .event(let event): [.event(event)]
        case .send(let request): [.send(request)]
        }
    }
}

extension EngineStateMachine.JoinFailureAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .none: []
        case .joinAgain(_, _, let failing): failing.map { .finish($0, .failure($1)) } + [.join]
        }
    }
}

extension EngineStateMachine.AbandonAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .none: []
        case .send(let request): [.send(request)]
        case .fail(let id, let error): [.finish(id, .failure(error))]
        }
    }
}

extension EngineStateMachine.SessionEndAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .event(let event): [.event(event)]
        case .fail(let id, let error): [.finish(id, .failure(error))]
        case .lose(let id, let error): [.lose(id, error)]
        case .subscribe: [.subscribe]
        }
    }
}

extension EngineStateMachine.ReplyAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .sessionEnded(let end): end.recorded
        case .send(let request), .retry(let request, _): [.send(request)]
        case .finish(let id, let result): [.finish(id, result)]
        case .lose(let id, let error): [.lose(id, error)]
        case .event(let event): [.event(event)]
        }
    }
}

extension EngineStateMachine.WakeUpAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .sessionEnded(let end): end.recorded
        case .send(let request): [.send(request)]
        case .finish(let id, let result): [.finish(id, result)]
        case .lose(let id, let error): [.lose(id, error)]
        case .recall(let claim): [.recall(claim)]
        }
    }
}

extension EngineStateMachine.GapAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .none: []
        case .sessionEnded(let end): end.recorded
        case .send(let request): [.send(request)]
        }
    }
}

extension EngineStateMachine.TickAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .sessionEnded(let end): end.recorded
        case .send(let request): [.send(request)]
        case .fail(let id, let error): [.finish(id, .failure(error))]
        case .event(let event): [.event(event)]
        }
    }
}

extension EngineStateMachine.StopAction: MachineAction {
    var recorded: [MachineRun.Action] {
        switch self {
        case .finish(let id, let result): [.finish(id, result)]
        case .lose(let id, let error): [.lose(id, error)]
        }
    }
}
