import Hiredis
import TestRandom

@testable import RedisDC

/// Feeds events to a state machine and describes its actions in words.
struct MachineRun {
    static let resource = Resource(name: "x", kind: .mutex, permits: 1)

    private var machine: EngineStateMachine
    private var actions: [EngineStateMachine.Action] = []
    private(set) var requests: [UInt64: EngineRequest] = [:]
    private(set) var unanswered: [UInt64: EngineRequest] = [:]
    private(set) var lastNumber: UInt64 = 0
    private var session: SessionLife?
    private var wantsListen = false
    private var wantsJoin = false
    var now = Duration.zero

    init() {
        nonisolated(unsafe) var count = 0
        machine = EngineStateMachine(settings: EngineStateMachine.Settings()) {
            count += 1
            return SessionLife(id: "session\(count)", now: { .zero })
        }
    }

    static func live() -> MachineRun {
        var run = MachineRun()
        run.apply { $0.start() }
        run.listening()
        run.joined()
        _ = run.taken()
        return run
    }

    // MARK: Events

    mutating func apply(_ event: (inout EngineStateMachine) -> [EngineStateMachine.Action]) {
        note(event(&machine))
    }

    mutating func apply(_ event: (inout EngineStateMachine, String, Duration) -> [EngineStateMachine.Action]) {
        note(event(&machine, machine.sessionLife.id, now))
    }

    private mutating func note(_ new: [EngineStateMachine.Action]) {
        for action in new {
            switch action {
            case .send(let request, _):
                if request.session == machine.sessionLife.id {
                    requests[request.number] = request
                    unanswered[request.number] = request
                    lastNumber = max(lastNumber, request.number)
                }
            case .listen(let life):
                session = life
                (wantsListen, unanswered) = (true, [:])
            case .join: wantsJoin = true
            default: break
            }
        }
        actions += new
    }

    mutating func listening(hears: Bool = true) {
        wantsListen = false
        apply { $0.listening($1, hears: hears, now: $2) }
    }

    mutating func joined() {
        wantsJoin = false
        apply { $0.joined($1, epoch: "epoch", now: $2) }
    }

    /// Begins the next session if the last one was lost.
    mutating func rejoin() {
        if wantsListen { listening() }
        if wantsJoin { joined() }
    }

    mutating func acquire(_ id: UInt64, mode: Mode = .lease, deadline: Duration? = nil) {
        apply { $0.acquire(id, AcquireRequest(resource: Self.resource, mode: mode), deadline: deadline, now: $2) }
    }

    mutating func cancel(_ id: UInt64) { apply { $0.abandon(id, RedisDCError(.cancelled, ""), now: $2) } }

    mutating func hint(_ text: String) { apply { $0.hint($1, text, now: $2) } }

    mutating func reply(_ number: UInt64, _ reply: EngineReply) {
        guard let request = requests[number] else { return }
        unanswered[number] = nil
        apply { $0.reply(request, .success(reply), now: $2) }
    }

    mutating func fail(_ number: UInt64) {
        guard let request = requests[number] else { return }
        apply { $0.reply(request, .failure(.retry(.init(.connectionLost, "", mayHaveRun: true))), now: $2) }
    }

    mutating func refuse(_ number: UInt64) {
        guard let request = requests[number] else { return }
        unanswered[number] = nil
        apply { $0.reply(request, .failure(.fatal(RedisDCError(.notPermitted, ""))), now: $2) }
    }

    mutating func advance(_ duration: Duration) {
        now += duration
        apply { $0.tick(now: $2) }
    }

    mutating func answerAtRandom(_ request: EngineRequest, _ generator: inout SplitMix) {
        let answer: EngineReply =
            switch request.operation {
            case .claim: Bool.random(using: &generator) ? .queued : .granted(fence: request.number + 1000)
            case .heartbeat: .heartbeat(grants: Int.random(in: 0...3, using: &generator), claims: 1, .none)
            case .reconcile: .page(next: "", [])
            default: .done(count: 1, more: Int.random(in: 0..<8, using: &generator) == 0)
            }
        reply(request.number, Int.random(in: 0..<20, using: &generator) == 0 ? .lost(isOver: false) : answer)
    }

    mutating func shutdownRequests() -> [String] {
        machine.shutdownRequests().map { request in
            guard case .release(_, let claim, _, _) = request.operation else { return "something else" }
            return "release of \(claim)"
        }.sorted()
    }

    // MARK: Actions

    mutating func takenActions() -> [EngineStateMachine.Action] {
        defer { actions = [] }
        return actions
    }

    mutating func taken() -> [String] { takenActions().map(Self.words) }

    private static func words(_ action: EngineStateMachine.Action) -> String {
        switch action {
        case .listen: return "listen"
        case .join: return "join"
        case .lose(let id, _): return "lose \(id)"
        case .event(.sessionStarted): return "event started"
        case .event(.sessionLost(_, let reason)): return "event lost \(reason == .expired ? "expired" : "dataLost")"
        case .event(.dataLost): return "event dataLost"
        case .event: return "event"
        case .finish(let id, .success(.granted(let grant))): return "finish \(id) granted \(grant.fence)"
        case .finish(let id, .success): return "finish \(id)"
        case .finish(let id, .failure(let error)):
            return "finish \(id) \(error.code)" + (error.mayHaveRun ? " may have run" : "")
        case .send(let request, _):
            let what: String =
                switch request.operation {
                case .claim: "acquire \(request.number)"
                case .release(_, let claim, _, _): "release \(request.number) of \(claim)"
                case .leave(_, let claim): "leave \(request.number) of \(claim)"
                case .pass(_, let claim, _, _): "pass \(request.number) of \(claim)"
                case .signal: "signal \(request.number)"
                case .heartbeat: "heartbeat \(request.number)"
                case .reconcile: "reconcile \(request.number)"
                default: "something else"
                }
            let confirmed = request.acknowledged.map { "\($0)" }.joined(separator: ",")
            return "send \(what)" + (confirmed.isEmpty ? "" : " confirming \(confirmed)")
        }
    }
}

extension EngineReply.Duties {
    static var none: EngineReply.Duties { EngineReply.Duties([], []) }
}
